"""Tickets: evaluations become ticket changes (`reconcile`), and the trackers are told (`deliver`)."""

from streamwarden.tickets.responses import Response, ResponseError, answer
from streamwarden.tickets.deliver import Delivery, deliver, reconcile_and_deliver
from streamwarden.tickets.listen import listen
from streamwarden.tickets.plan import Plan
from streamwarden.tickets.reconcile import reconcile
from streamwarden.tickets.sinks import open_sink

__all__ = [
    "Answer", "AnswerError", "Delivery", "Plan", "response", "deliver", "listen", "open_sink", "reconcile",
    "reconcile_and_deliver",
]  # fmt: skip

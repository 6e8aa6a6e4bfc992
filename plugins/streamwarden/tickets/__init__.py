"""Tickets: `reconcile` turns evaluations into ticket changes, `deliver` posts them to the trackers."""

from streamwarden.tickets.deliver import Delivery, deliver, reconcile_and_deliver
from streamwarden.tickets.listen import listen
from streamwarden.tickets.plan import Plan
from streamwarden.tickets.reconcile import reconcile
from streamwarden.tickets.responses import Response, ResponseError, respond
from streamwarden.tickets.sinks import open_sink

__all__ = [
    "Delivery",
    "Plan",
    "Response",
    "ResponseError",
    "deliver",
    "listen",
    "open_sink",
    "reconcile",
    "reconcile_and_deliver",
    "respond",
]  # fmt: skip

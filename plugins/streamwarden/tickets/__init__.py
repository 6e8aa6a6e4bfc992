"""Tickets: evaluations become ticket changes (`reconcile`), and the trackers are told (`deliver`)."""

from streamwarden.tickets.deliver import Delivery, deliver, reconcile_and_deliver
from streamwarden.tickets.listen import listen
from streamwarden.tickets.muting import mute, unmute
from streamwarden.tickets.plan import Plan
from streamwarden.tickets.reconcile import reconcile
from streamwarden.tickets.sinks import open_sink

__all__ = ["Delivery", "Plan", "deliver", "listen", "mute", "open_sink", "reconcile", "reconcile_and_deliver", "unmute"]

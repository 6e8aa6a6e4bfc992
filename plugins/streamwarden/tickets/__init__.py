"""Tickets: evaluations become ticket changes (`reconcile`), and the tracker is told (`deliver`)."""

from streamwarden.tickets.deliver import Delivery, deliver, listen, open_sink, reconcile_and_deliver
from streamwarden.tickets.muting import mute, unmute
from streamwarden.tickets.reconcile import Plan, reconcile

__all__ = ["Delivery", "Plan", "deliver", "listen", "mute", "open_sink", "reconcile", "reconcile_and_deliver", "unmute"]

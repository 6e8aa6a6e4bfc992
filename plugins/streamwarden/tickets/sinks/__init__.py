"""Clients of trackers. `contract` defines their interface, base/config/trackers.py has the settings of each kind."""

from importlib import import_module

from streamwarden.base.config.trackers import Tracker
from streamwarden.tickets.sinks.contract import Sink


def open_sink(name: str, settings: Tracker) -> Sink:
    """The client of a configured tracker: the class `Tracker` of the module with the name of its kind."""
    sink: Sink = import_module(f"{__name__}.{settings.kind}").Tracker(name, settings)
    return sink

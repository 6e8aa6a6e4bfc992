"""The trackers; `contract` says what each can do. A kind's settings are its class in base/config/trackers.py."""

from importlib import import_module

from streamwarden.base.config.trackers import Tracker
from streamwarden.tickets.sinks.contract import Sink


def open_sink(name: str, settings: Tracker) -> Sink:
    """A tracker of the config: the class `Tracker` of the module that is called as its kind."""
    sink: Sink = import_module(f"{__name__}.{settings.kind}").Tracker(name, settings)
    return sink

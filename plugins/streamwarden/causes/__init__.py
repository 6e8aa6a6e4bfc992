"""Which finding in alarm caused which: weighed per hour, stored, and tried again for any hour of the past."""

from streamwarden.causes.weighing import Cause, find_causes, weigh

__all__ = ["Cause", "find_causes", "weigh"]

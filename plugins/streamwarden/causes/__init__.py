"""Which firing finding caused which: weighed per hour, stored, and weighed again for any past hour."""

from streamwarden.causes.weighing import Cause, find_causes, weigh

__all__ = ["Cause", "find_causes", "weigh"]

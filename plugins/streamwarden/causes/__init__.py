"""Ranks the causes of firing findings for each hour and stores them; any past hour can be ranked again."""

from streamwarden.causes.topology import store_topology
from streamwarden.causes.weighing import Cause, find_causes, weigh

__all__ = ["Cause", "find_causes", "store_topology", "weigh"]

"""Detectors: one SQL file each under `sql/detectors/<subject>/<id>.sql`, judged here for one hour at a time.

`load_detectors` reads the headers (an unknown key is an error), `evaluate` runs one detector and stores what it said.
"""

from streamwarden.detectors.evaluate import Judgement, evaluate
from streamwarden.detectors.load import Detector, Parameter, load_detectors

__all__ = ["Detector", "Judgement", "Parameter", "evaluate", "load_detectors"]

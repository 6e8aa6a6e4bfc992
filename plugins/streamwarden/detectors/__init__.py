"""Detectors: one SQL file each, `sql/detectors/<subject>/<id>.sql`, evaluated for one hour at a time.

`load_detectors` reads the headers (an unknown key is an error), `evaluate` runs a detector and stores its findings.
"""

from streamwarden.detectors.evaluate import evaluate, findings
from streamwarden.detectors.finding import Finding
from streamwarden.detectors.load import Detector, Parameter, Verdict, load_detectors
from streamwarden.detectors.results import DetectorRun

__all__ = ["Detector", "DetectorRun", "Finding", "Parameter", "Verdict", "evaluate", "findings", "load_detectors"]

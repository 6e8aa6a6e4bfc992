"""Trackers: one module each, by the contract of `contract.py`."""

"""Measurements, run by `make bench`: figures beside their limits, never a pass or fail of a test."""

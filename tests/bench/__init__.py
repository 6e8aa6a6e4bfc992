"""Measurements, run by `make bench`: metrics with their limits, never a pass or fail of a test."""

"""Formats values with units, and renders templates."""

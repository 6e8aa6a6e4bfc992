"""Streamwarden acts here."""

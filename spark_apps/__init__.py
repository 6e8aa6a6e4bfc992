"""Streamwarden computes here: sources, apps (one subject of the warehouse each) and the way into the warehouse."""

"""Spark code of Streamwarden: sources, apps (one subject of the warehouse each), and reading and writing the
warehouse."""

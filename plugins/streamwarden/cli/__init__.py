"""The command line: `streamwarden …`."""

"""The installed version of Streamwarden, e.g. `0.1.0`."""

from importlib.metadata import version

VERSION = version("streamwarden")
USER_AGENT = f"streamwarden/{VERSION}"

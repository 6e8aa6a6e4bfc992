"""Ports of the demo fleet, and the environment variables that move them."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields

from streamwarden.base.errors import StreamwardenError


@dataclass(frozen=True)
class Ports:
    """Ports on 127.0.0.1 by part; 0: any free port."""

    broker: int = 19092
    broker_jolokia: int = 18778
    app_jolokia: int = 18779
    aws: int = 14566
    tracker: int = 18917

    @classmethod
    def from_environment(cls) -> Ports:
        """The defaults, overridden by `DEMO_<PART>_PORT`."""
        return cls(**{f.name: port_of(_variable(f.name), int(str(f.default))) for f in fields(cls)})


def _variable(part: str) -> str:
    return f"DEMO_{part.upper()}_PORT"


def owner_of(part: str) -> tuple[str, str]:
    """The part in words, and the variable that moves its port."""
    what = {
        "broker": "Kafka broker",
        "broker_jolokia": "the broker's Jolokia agent",
        "app_jolokia": "the application's Jolokia agent",
        "aws": "AWS endpoint",
        "tracker": "Roundup",
    }[part]
    return what, _variable(part)


def port_of(variable: str, default: int) -> int:
    """The port in an environment variable.

    Raises:
        StreamwardenError: it is no port number.
    """
    text = os.environ.get(variable, "")
    if not text:
        return default
    if not text.isdigit() or int(text) > 65535:
        raise StreamwardenError(f"{variable}: '{text}' is not a port number")
    return int(text)

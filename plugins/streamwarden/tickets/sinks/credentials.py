"""User and password of a tracker, from the config (that is, from the environment) or from an Airflow connection."""

from __future__ import annotations

from typing import Any

from streamwarden.base.config.trackers import Credentials
from streamwarden.base.errors import StreamwardenError


def login(name: str, settings: Credentials) -> tuple[str, str]:
    """User (or nothing) and password.

    Raises:
        StreamwardenError: Airflow has no such connection, or it has no password.
    """
    if settings.connection is None:
        return settings.user or "", settings.password or ""
    connection = airflow_connection(f"tickets.trackers.{name}", settings.connection)
    if not connection.password:
        raise StreamwardenError(
            f"tickets.trackers.{name}.connection: the Airflow connection '{settings.connection}' has no password."
        )
    return connection.login or settings.user or "", connection.password


def airflow_connection(section: str, connection_id: str) -> Any:
    """An Airflow connection that a section of the config names.

    Raises:
        StreamwardenError: Airflow is not installed, or has no such connection.
    """
    try:
        from airflow.sdk import Connection  # takes seconds, so only if a connection is configured
    except ImportError:
        raise StreamwardenError(
            f"{section}.connection: there is no Airflow here, so no connection '{connection_id}': install"
            " `streamwarden[airflow]`, or give `user` and `password` (as ${NAME}) in its place."
        ) from None
    try:
        return Connection.get(connection_id)
    except Exception as error:  # Airflow's own, or its database's
        raise StreamwardenError(
            f"{section}.connection: Airflow has no connection '{connection_id}'"
            f" ({type(error).__name__}); make one with `airflow connections add`."
        ) from None

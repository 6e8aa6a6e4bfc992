"""Prints a psql script that runs a detector's SQL with its parameters."""

from __future__ import annotations

from datetime import datetime

from streamwarden.detectors.load import Detector, ParameterValue


def psql_script(detector: Detector, params: dict[str, ParameterValue], hour: datetime) -> str:
    """Lines for psql: the file itself, unchanged, with `:hour` and the parameters set before it."""
    values = {"hour": f"{hour:%Y-%m-%d %H:%M}+00", **params}
    lines = [f"\\set {name} {_literal(value)}" for name, value in values.items()]
    return "\n".join([*lines, f"\\i {detector.file}"])


def _literal(value: ParameterValue) -> str:
    """An SQL literal, quoted once more for psql's \\set."""
    if isinstance(value, bool | int | float):
        return str(value).lower()
    sql = "'" + value.replace("'", "''") + "'"
    return "'" + sql.replace("\\", "\\\\").replace("'", "''") + "'"

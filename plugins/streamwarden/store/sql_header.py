"""Reads the YAML header in the first comment of our SQL files (detectors, plots, reports)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import SQL


def read_header(file: Path) -> tuple[dict[str, Any], str]:
    """Header and full text of an SQL file.

    Raises:
        StreamwardenError: the header is missing or not YAML; one line with the file.
    """
    text = file.read_text()
    found = re.match(r"\s*/\*(.*?)\*/", text, re.DOTALL)
    if not found:
        raise StreamwardenError(f"{shown(file)}: must begin with a comment that contains its YAML header.")
    try:
        header = yaml.load(found[1], yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise StreamwardenError(f"{shown(file)}: the header is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(header, dict):
        raise StreamwardenError(f"{shown(file)}: the header must contain keys and values.")
    return header, text


def shown(file: Path) -> str:
    """The path for messages: relative to the project if the file is in it."""
    return str(file.relative_to(SQL.parent)) if file.is_relative_to(SQL) else str(file)

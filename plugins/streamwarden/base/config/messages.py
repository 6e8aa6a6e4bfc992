"""Mistakes in the config, each as one line: key, problem, and value as written in the file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from streamwarden.base.addresses import masked
from streamwarden.base.similar import did_you_mean

VARIABLE = re.compile(r"\$\{(\w+)\}")
_SECRETS = ("password", "client", "token", "secret")
"""Keys with these words are shown without their values."""


def describe(error: ErrorDetails, raw: Any, model: type[BaseModel], missing: Mapping[str, str]) -> str | None:
    """The line of a mistake that pydantic found.

    Args:
        raw: the parsed file.
        model: the model of the whole file.
        missing: environment variables that are not set, by key. A mistake that may only come from one is None.
    """
    where, value = _in_file(error["loc"], raw), error["input"]
    if error["type"] == "extra_forbidden":
        key = str(where[-1])
        way_out = did_you_mean(key, _fields(model, error["loc"]), "see docs/config.md")
        return f"{_key(where)}: unknown key; {way_out}"
    if missing and (isinstance(value, dict | list | BaseModel) or VARIABLE.search(str(value))):
        return None
    if error["type"] == "missing":
        return f"{_key(where)}: is required"
    if error["type"] == "union_tag_invalid":
        tag, tags = error["ctx"]["tag"], error["ctx"]["expected_tags"].replace("'", "")
        return f"{_key(where)}.kind: '{tag}' is none of {tags}"
    # YAML reads an unquoted account id as a number, and an unquoted tag `true` as a Boolean.
    is_unquoted = error["type"] == "string_type" and isinstance(value, int | float)
    problem = error["msg"].removeprefix("Value error, ").replace("Input should be", "must be").replace("Input is", "is")
    why = f"{problem.partition(', unable to ')[0]}{': write it in quotes' if is_unquoted else ''}"
    return described(where, why, None if isinstance(value, dict | list | BaseModel) else raw)


def described(where: Sequence[str | int], why: str, raw: Any) -> str:
    """The line of a mistake: key, problem, and value as written in the file, unless it may be a secret."""
    key = _key(where)
    shown = "" if any(word in key for word in _SECRETS) else _as_written(raw, where)
    return f"{key}: {why}{shown}".removeprefix(": ")


def _key(where: Sequence[str | int]) -> str:
    return ".".join(map(str, where))


def _in_file(where: Sequence[str | int], raw: Any) -> list[str | int]:
    """A place as it is in the file: pydantic adds the kind of an entry to it."""
    found, value = [], raw
    for part in where:
        if isinstance(value, dict) and part not in value and value.get("kind") == part:
            continue
        found.append(part)
        try:
            value = value[part]
        except (LookupError, TypeError):
            value = None
    return found


def _fields(model: type[BaseModel], where: Sequence[str | int]) -> set[str]:
    """Names of the fields that could be at a place."""
    models = {model}
    for part in where[:-1]:
        if fields := [one.model_fields[part] for one in models if part in one.model_fields]:
            models = {found for field in fields for found in _models(field.annotation)}
    return {field.alias or name for one in models for name, field in one.model_fields.items()}


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Models in an annotation such as `dict[str, A | B]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


def _as_written(value: Any, where: Sequence[str | int]) -> str:
    """The value as written in the file: `${NAME}` is not replaced, because it may be a secret."""
    try:
        for part in where:
            value = value[part]
    except (LookupError, TypeError):
        return ""
    if value is None or isinstance(value, dict | list):
        return ""
    return f" (value: {(masked(value) if isinstance(value, str) else value)!r})"

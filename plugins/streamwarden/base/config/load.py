"""Finds, reads and checks the config file: one clear line per mistake.

The file is found by `$STREAMWARDEN_CONFIG`, else `streamwarden.yaml` in the project. Secrets never stand in it: a
value `${NAME}` is taken from the environment when the file is loaded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from streamwarden.base.addresses import masked
from streamwarden.base.config.model import Config
from streamwarden.base.config.strict_yaml import read_yaml
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import PROJECT_ROOT

CONFIG_ENV = "STREAMWARDEN_CONFIG"
WAREHOUSE_ENV = "STREAMWARDEN_WAREHOUSE_URL"
SENT_CONFIG_ENV = "STREAMWARDEN_SENT_CONFIG"
"""The config itself, as JSON, where a driver sent it to Spark's executors."""


def config_path() -> Path:
    """The file in force: `$STREAMWARDEN_CONFIG`, else `streamwarden.yaml` of the project."""
    return Path(os.environ.get(CONFIG_ENV) or PROJECT_ROOT / "streamwarden.yaml")


def load_config(path: Path | None = None) -> Config:
    """Reads and checks a config file.

    Raises:
        StreamwardenError: one line that names file, key, value and reason, for the first mistakes found.
    """
    if path is None and (sent := os.environ.get(SENT_CONFIG_ENV)):
        return _load_sent(sent)
    path = path or config_path()
    return _load(path, path.stat().st_mtime_ns if path.exists() else 0)


@cache
def _load_sent(sent: str) -> Config:
    return Config.model_validate_json(sent)


@cache
def _load(path: Path, _mtime_ns: int) -> Config:
    try:
        raw = read_yaml(path.read_text())
    except FileNotFoundError:
        raise StreamwardenError(
            f"{path}: no such config file. Copy streamwarden.example.yaml there, or set {CONFIG_ENV}."
        ) from None
    except OSError as error:
        raise StreamwardenError(f"{path}: can't be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise StreamwardenError(f"{path}: not text in UTF-8; save it as that.") from None
    except (yaml.constructor.ConstructorError, yaml.composer.ComposerError) as error:
        raise StreamwardenError(f"{path}: {_place(error)}{error.problem}.") from None
    except yaml.YAMLError as error:
        told = " ".join(str(error).replace('in "<unicode string>", ', "at ").split())
        raise StreamwardenError(f"{path}: not YAML: {told}") from None
    if raw is not None and not isinstance(raw, dict):
        raise StreamwardenError(f"{path}: the file must hold keys and values, not a {type(raw).__name__}.")
    try:
        return Config.model_validate(_fill_in(raw or {}, path, ""))
    except ValidationError as error:
        raise StreamwardenError(f"{path}: " + "; ".join(_describe(e, raw) for e in error.errors()[:5])) from None


def described(path: Path, where: Sequence[str | int], why: str) -> str:
    """A mistake that was found after loading, in the words of those found before: key, what is wrong, value."""
    return _described(where, why, read_yaml(path.read_text()))


def _place(error: yaml.MarkedYAMLError) -> str:
    return f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""


def _describe(error: Any, raw: Any) -> str:
    key = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"{key}: unknown key (see docs/config.md)"
    value = error["input"]
    # What looks like a number or a truth value is one to YAML: an account's id, the tag `true`.
    cure = ": write it in quotes" if error["type"] == "string_type" and isinstance(value, int | float) else ""
    why = f"{error['msg'].removeprefix('Value error, ')}{cure}"
    return _described(error["loc"], why, None if isinstance(value, dict | list | BaseModel) else raw)


def _described(where: Sequence[str | int], why: str, raw: Any) -> str:
    key = ".".join(map(str, where))
    shown = "" if any(word in key for word in ("password", "client", "token")) else _as_written(raw, where)
    return f"{key}: {why}{shown}".removeprefix(": ")


def _as_written(value: Any, where: Sequence[str | int]) -> str:
    """The value as the file has it: `${NAME}`, not what the environment has, which may be a secret."""
    try:
        for part in where:
            value = value[part]
    except (LookupError, TypeError):
        return ""
    if value is None or isinstance(value, dict | list):
        return ""
    return f" (value: {(masked(value) if isinstance(value, str) else value)!r})"


def _fill_in(value: Any, path: Path, key: str) -> Any:
    """Replaces `${NAME}` by the environment's value, everywhere in the file."""
    if isinstance(value, dict):
        return {k: _fill_in(v, path, f"{key}.{k}".lstrip(".")) for k, v in value.items()}
    if isinstance(value, list):
        return [_fill_in(v, path, f"{key}.{i}") for i, v in enumerate(value)]
    if not isinstance(value, str):
        return value

    def from_environment(match: re.Match[str]) -> str:
        found = os.environ.get(match[1])
        if found is None:
            raise StreamwardenError(f"{path}: {key}: environment variable {match[1]} is not set.")
        return found

    return re.sub(r"\$\{(\w+)\}", from_environment, value)

"""Finds, reads, and validates the config file; each mistake is reported as one line.

The path is `$STREAMWARDEN_CONFIG`, else `streamwarden.yaml` in the project. Secrets are not written in the file: a
value `${NAME}` is replaced by the environment variable when the file is loaded.
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
"""Environment variable with the config as JSON, which a Spark driver sets for its executors."""


def config_path() -> Path:
    """Path of the config file: `$STREAMWARDEN_CONFIG`, else `streamwarden.yaml` of the project."""
    return Path(os.environ.get(CONFIG_ENV) or PROJECT_ROOT / "streamwarden.yaml")


def load_config(path: Path | None = None) -> Config:
    """Reads and validates a config file. The result is cached until the file changes.

    Args:
        path: the file; None: `config_path()`, or in a Spark executor the config that the driver sent.

    Raises:
        StreamwardenError: one line with file, key, value, and problem of the first mistakes.
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
        raise StreamwardenError(f"{path}: cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise StreamwardenError(f"{path}: is not UTF-8 text; save it in UTF-8.") from None
    except (yaml.constructor.ConstructorError, yaml.composer.ComposerError) as error:
        raise StreamwardenError(f"{path}: {_place(error)}{error.problem}.") from None
    except yaml.YAMLError as error:
        problem = " ".join(str(error).replace('in "<unicode string>", ', "at ").split())
        raise StreamwardenError(f"{path}: not YAML: {problem}") from None
    if raw is not None and not isinstance(raw, dict):
        raise StreamwardenError(f"{path}: the file must contain keys and values, not a {type(raw).__name__}.")
    return validated(raw, path)


def validated(raw: dict[str, Any] | None, path: Path) -> Config:
    """The config of a parsed document; `path` is the file that messages name.

    Raises:
        StreamwardenError: one line with key, value, and problem of the first mistakes.
    """
    try:
        return Config.model_validate(_fill_in(raw or {}, path, ""))
    except ValidationError as error:
        raise StreamwardenError(f"{path}: " + "; ".join(_describe(e, raw) for e in error.errors()[:5])) from None


def described(path: Path, where: Sequence[str | int], why: str) -> str:
    """The line about a mistake that was found after loading: key, problem, and value as written in the file."""
    return _described(where, why, read_yaml(path.read_text()))


def _place(error: yaml.MarkedYAMLError) -> str:
    return f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""


def _describe(error: Any, raw: Any) -> str:
    key = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"{key}: unknown key (see docs/config.md)"
    value = error["input"]
    # YAML reads an unquoted account id as a number, and an unquoted tag `true` as a Boolean.
    is_unquoted = error["type"] == "string_type" and isinstance(value, int | float)
    why = f"{error['msg'].removeprefix('Value error, ')}{': write it in quotes' if is_unquoted else ''}"
    return _described(error["loc"], why, None if isinstance(value, dict | list | BaseModel) else raw)


def _described(where: Sequence[str | int], why: str, raw: Any) -> str:
    key = ".".join(map(str, where))
    shown = "" if any(word in key for word in ("password", "client", "token", "secret")) else _as_written(raw, where)
    return f"{key}: {why}{shown}".removeprefix(": ")


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


def _fill_in(value: Any, path: Path, key: str) -> Any:
    """Replaces each `${NAME}` by the value of the environment variable."""
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

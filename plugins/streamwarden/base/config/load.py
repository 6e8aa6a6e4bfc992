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
from pydantic import ValidationError

from streamwarden.base.config import messages
from streamwarden.base.config.messages import VARIABLE, describe
from streamwarden.base.config.model import Config
from streamwarden.base.config.strict_yaml import read_yaml
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import PROJECT_ROOT

CONFIG_ENV = "STREAMWARDEN_CONFIG"
WAREHOUSE_ENV = "STREAMWARDEN_WAREHOUSE_URL"
MOST_MISTAKES = 5
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
            f"{path}: no such config file. Create it with `streamwarden init`, or name another by --config"
            f" or {CONFIG_ENV}."
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
    missing: dict[str, str] = {}
    found: list[str] = []
    filled = _fill_in(raw or {}, "", missing)
    try:
        config = Config.model_validate(filled)
    except ValidationError as error:
        # An unknown key first: it may be what another key is missing for.
        errors = sorted(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
        lines = (describe(one, raw, Config, missing) for one in errors)
        found = [line for line in lines if line is not None]
    found += [f"{key}: environment variable {name} is not set" for key, name in missing.items()]
    if found:
        raise StreamwardenError(f"{path}: {'; '.join(found[:MOST_MISTAKES])}")
    return config


def described(path: Path, where: Sequence[str | int], why: str) -> str:
    """The line about a mistake that was found after loading: key, problem, and value as written in the file."""
    return messages.described(where, why, read_yaml(path.read_text()))


def _place(error: yaml.MarkedYAMLError) -> str:
    return f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""


def _fill_in(value: Any, key: str, missing: dict[str, str]) -> Any:
    """Replaces each `${NAME}` by the environment variable; notes by key which one is not set."""
    if isinstance(value, dict):
        return {k: _fill_in(v, f"{key}.{k}".lstrip("."), missing) for k, v in value.items()}
    if isinstance(value, list):
        return [_fill_in(v, f"{key}.{i}", missing) for i, v in enumerate(value)]
    if not isinstance(value, str):
        return value

    def from_environment(match: re.Match[str]) -> str:
        if (found := os.environ.get(match[1])) is None:
            missing[key] = match[1]
        return match[0] if found is None else found

    return VARIABLE.sub(from_environment, value)

"""Loads detectors: each SQL file's header as a frozen dataclass. The id is the file's name, the subject its folder."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from streamwarden.base.catalogue import WRITER_OF
from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import SQL
from streamwarden.store.sql_header import read_header, shown

FOLDER = SQL / "detectors"
Severity = Literal["critical", "warning", "info"]
ParameterValue = bool | int | float | str
_STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True, config=_STRICT)
class Parameter:
    """A threshold: its default, unit and reason. Numbers are never negative."""

    default: ParameterValue
    unit: str
    why: str


@dataclass(frozen=True, config=_STRICT)
class Detector:
    """One detector as its file says it."""

    id: str
    subject: str
    title: str
    severity: Severity
    owner: str
    maturity: Literal["experimental", "stable"]
    reads: tuple[str, ...]
    identity: tuple[str, ...]
    params: dict[str, Parameter]
    clear_after_hours: int
    runbook: str
    blind_spots: str
    sql: str
    file: str
    open_after_hours: int = 1
    rule: str = ""
    """In words, for who wants to argue with it."""
    follows_from: tuple[str, ...] = ()
    """Detectors whose findings may be the cause of its own where both touch the same thing, the likeliest first."""

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of the file: header and SQL."""
        return hashlib.sha256(self.sql.encode()).hexdigest()

    @cached_property
    def apps(self) -> tuple[str, ...]:
        """The Spark apps that write what it reads."""
        return tuple(sorted({WRITER_OF[table] for table in self.reads if table in WRITER_OF}))

    def params_in_force(self, config: Config) -> dict[str, ParameterValue]:
        """Defaults with the config's overrides.

        Raises:
            StreamwardenError: as `with_params`, for what the config says.
        """
        settings = config.detectors.get(self.id)
        return self.with_params(
            {name: parameter.default for name, parameter in self.params.items()},
            settings.params if settings else {},
            f"detectors.{self.id}.params.",
        )

    def with_params(
        self, values: Mapping[str, ParameterValue], replaced: Mapping[str, ParameterValue], key: str
    ) -> dict[str, ParameterValue]:
        """The values, some of them replaced; `key` is what stands before a name where people wrote it.

        Raises:
            StreamwardenError: a name that the detector doesn't have, a value of another type, or a negative one.
        """
        for name, value in replaced.items():
            if name not in values:
                known = ", ".join(sorted(values)) or "none"
                raise StreamwardenError(f"{key}{name}: unknown parameter; {self.id} has: {known}.")
            if _kind(value) != _kind(values[name]):
                like = f"{_kind(values[name])} like {values[name]!r}"
                raise StreamwardenError(f"{key}{name}: must be a {like}, not {value!r}.")
            if isinstance(value, int | float) and not 0 <= value < math.inf:
                raise StreamwardenError(f"{key}{name}: must be 0 or more, not {value!r}.")
        return {**values, **replaced}


def load_detectors(folder: Path = FOLDER, config: Config | None = None) -> dict[str, Detector]:
    """All detectors by id; with a config only those it leaves enabled, and its overrides are checked.

    Raises:
        StreamwardenError: one line that names file, key and reason.
    """
    detectors: dict[str, Detector] = {}
    for file in sorted(folder.glob("*/*.sql")):
        detector = _load(file)
        if detector.id in detectors:
            raise StreamwardenError(f"{detector.file}: the id is taken by {detectors[detector.id].file}.")
        detectors[detector.id] = detector
    _check_causes(detectors)
    if config is None:
        return detectors
    if unknown := set(config.detectors) - set(detectors):
        known = ", ".join(sorted(detectors))
        raise StreamwardenError(f"detectors.{min(unknown)}: no such detector; there are: {known}.")
    for detector in detectors.values():
        detector.params_in_force(config)
    return {
        id_: detector
        for id_, detector in detectors.items()
        if id_ not in config.detectors or config.detectors[id_].enabled
    }


def _load(file: Path) -> Detector:
    header, sql = read_header(file)
    derived: dict[str, Any] = {"id": file.stem, "subject": file.parent.name, "sql": sql, "file": shown(file)}
    if taken := set(header) & set(derived):
        raise StreamwardenError(f"{shown(file)}: {min(taken)}: comes from the file's path, not from the header.")
    try:
        detector = TypeAdapter(Detector).validate_python({"params": {}, **header, **derived})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        reason = "unknown key" if first["type"] == "unexpected_keyword_argument" else first["msg"]
        raise StreamwardenError(f"{shown(file)}: {key}: {reason}") from None
    used = set(re.findall(r"(?<![:\w]):([a-z]\w*)", _without_comments(sql)))
    if difference := used - {"hour"} - set(detector.params):
        raise StreamwardenError(f"{shown(file)}: :{min(difference)}: used in the SQL but not in the header's params.")
    if difference := set(detector.params) - used:
        raise StreamwardenError(f"{shown(file)}: params.{min(difference)}: never used in the SQL.")
    return detector


def _check_causes(detectors: Mapping[str, Detector]) -> None:
    for detector in detectors.values():
        if unknown := set(detector.follows_from) - set(detectors):
            raise StreamwardenError(f"{detector.file}: follows_from: {min(unknown)}: no such detector.")
    try:
        TopologicalSorter({d.id: d.follows_from for d in detectors.values()}).prepare()
    except CycleError as error:
        circle = " <- ".join(error.args[1])
        raise StreamwardenError(
            f"{detectors[error.args[1][0]].file}: follows_from: goes in a circle: {circle}"
        ) from None


def _without_comments(sql: str) -> str:
    return re.sub(r"/\*.*?\*/|--[^\n]*", "", sql, flags=re.DOTALL)


def _kind(value: ParameterValue) -> str:
    return {bool: "boolean", int: "number", float: "number"}.get(type(value), "text")

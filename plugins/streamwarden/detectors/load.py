"""Loads detectors: each SQL file's header as a frozen dataclass. The id is the file's name, the subject its folder.

The SQL selects a reason and metrics for each resource. The header says under `verdicts` what each reason means and in
which texts. `streamwarden.detectors.check` holds both against each other, without a database.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from streamwarden.base.catalog import WRITERS_OF
from streamwarden.base.config import Config, config_path
from streamwarden.base.config.sql_pattern import compiles_in_postgres
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import SQL
from streamwarden.base.similar import did_you_mean
from streamwarden.detectors.resources import KINDS
from streamwarden.rendering.readable import SEVERITIES, Severity
from streamwarden.store.sql_header import read_header, shown

FOLDER = SQL / "detectors"
MAX_KEY_METRICS = 5
RESOURCE_VALUES = ("name", "owner", "application", "bootstrap_servers")
"""What every template may use besides metrics: of the resource, and of its cluster in the config."""
NOT_METRICS = ("reason", "severity", "affected")
EXCEPTED = "excepted"
"""The reason of resources that the config excludes (`off: true`)."""

Status = Literal["firing", "ok", "unknown"]
ParameterValue = bool | int | float | str
_STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True, config=_STRICT)
class Parameter:
    """A threshold: its default, unit and reason. Numbers are never negative."""

    default: ParameterValue
    unit: str
    why: str


@dataclass(frozen=True, config=_STRICT)
class Verdict:
    """What a reason means and in which texts: Jinja templates over the row's metrics and the parameters."""

    status: Status
    message: str
    """Symptom, measured value against its limit, since when: one sentence."""
    severity: Severity | None = None
    """Of a firing verdict; a column `severity` of the row overrides it."""
    details: tuple[str, ...] = ()
    """Further evidence, one sentence each; one that renders empty is left out."""
    impact: str = ""
    """What happens to whom if nothing is done. Every firing verdict has it."""
    actions: tuple[str, ...] = ()
    """Imperative and ordered: restore, fix, prevent. One that renders empty is left out."""
    commands: tuple[str, ...] = ()
    """Lines to paste into a shell, metrics as raw values."""
    is_not_applicable: bool = False
    """Of an unknown verdict that does not come from missing data: a detached volume, for example."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The templates that people read as sentences."""
        return tuple(text for text in (self.message, *self.details, self.impact, *self.actions) if text)

    @property
    def templates(self) -> tuple[str, ...]:
        """All templates."""
        return (*self.texts, *self.commands)


@dataclass(frozen=True, config=_STRICT)
class Detector:
    """One detector as its file defines it."""

    id: str
    subject: str
    title: str
    resource_kind: str
    owner_role: str
    """Who maintains the detector. Who gets the ticket depends on the resource."""
    maturity: Literal["experimental", "stable"]
    reads: tuple[str, ...]
    params: dict[str, Parameter]
    verdicts: dict[str, Verdict]
    clear_after_hours: int
    runbook: str
    """Markdown with the headings Meaning, Impact, Diagnosis, Mitigation."""
    limitations: str
    sql: str
    file: str
    key_metrics: tuple[str, ...] = ()
    """The metrics that cards, tickets, and mails show, most important first."""
    open_after_hours: int = 1
    description: str = ""
    """How the detector decides, in Markdown."""
    causes: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Mechanism (sql/mechanisms.yaml) → the reasons that start it."""
    caused_by: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Mechanism → the reasons that it may lead to."""
    narrower_kinds: tuple[str, ...] = ()
    """Kinds of resources that a row may be about instead, such as a topic of the cluster; see `kind_of`."""
    is_mutation_tested: bool = True
    """Whether `make check` runs mutation tests on a sample: at most 5 % of mutants may survive its cases."""

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of the file: header and SQL."""
        return hashlib.sha256(self.sql.encode()).hexdigest()

    @cached_property
    def apps(self) -> tuple[str, ...]:
        """Names of the Spark apps that write the tables that the detector reads."""
        return tuple(sorted({app for table in self.reads for app in WRITERS_OF.get(table, ())}))

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns that identify a resource."""
        return KINDS[self.resource_kind]

    @property
    def kinds(self) -> tuple[str, ...]:
        """All kinds of resources that its rows may be about, the narrower ones first."""
        return (*self.narrower_kinds, self.resource_kind)

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The key columns of all its kinds."""
        columns = [column for kind in (self.resource_kind, *self.narrower_kinds) for column in KINDS[kind]]
        return tuple(dict.fromkeys(columns))

    def kind_of(self, row: Mapping[str, Any]) -> str:
        """The kind of resource that a row is about: the first narrower kind with a value in each of its key columns."""
        return next(
            (kind for kind in self.narrower_kinds if all(row.get(column) is not None for column in KINDS[kind])),
            self.resource_kind,
        )

    @property
    def severity(self) -> Severity:
        """The highest severity of its verdicts."""
        return min((verdict.severity for verdict in self.verdicts.values() if verdict.severity), key=SEVERITIES.index)

    def params_in_force(self, config: Config) -> dict[str, ParameterValue]:
        """Defaults with the config's overrides.

        Raises:
            StreamwardenError: an override is invalid, see `with_params`.
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
        """The values with some of them replaced; `key` is the prefix of a parameter's name in errors.

        Raises:
            StreamwardenError: the detector has no parameter of that name, or the value is negative or of another type.
        """
        return replaced_params(self.id, self.params, values, replaced, key)


def replaced_params(
    owner: str, params: Mapping[str, Parameter], values: Mapping[str, ParameterValue],
    replaced: Mapping[str, ParameterValue], key: str,
) -> dict[str, ParameterValue]:  # fmt: skip
    """The values with some of them replaced.

    Args:
        owner: id of the detector or rule that has the parameters, for errors.
        key: prefix of a parameter's name in errors.

    Raises:
        StreamwardenError: the owner has no parameter of that name, or the value is negative or of another type.
    """
    for name, value in replaced.items():
        if name not in values:
            known = ", ".join(sorted(values)) or "none"
            raise StreamwardenError(f"{key}{name}: unknown parameter; {owner} has: {known}.")
        if _kind(value) != _kind(values[name]):
            like = f"{_kind(values[name])} like {values[name]!r}"
            raise StreamwardenError(f"{key}{name}: must be a {like}, not {value!r}.")
        if isinstance(value, int | float) and not 0 <= value <= sys.float_info.max:
            raise StreamwardenError(f"{key}{name}: must be 0 or more and finite, not {value!r:.40}.")
        if isinstance(value, str) and params[name].unit in ("regex", "pattern"):
            try:
                compiles_in_postgres(value)
            except ValueError as error:
                raise StreamwardenError(f"{key}{name}: {error} (value: {value!r}).") from None
    return {**values, **replaced}


def load_detectors(folder: Path = FOLDER, config: Config | None = None, *, check: bool = True) -> dict[str, Detector]:
    """All detectors by id; with a config, only the enabled ones, and its overrides are validated.

    Args:
        check: whether header and SQL of each file are validated against each other; False where `checked` follows, and
            while a DAG is parsed, which every task does.

    Raises:
        StreamwardenError: one line with file, key, and problem.
    """
    detectors: dict[str, Detector] = {}
    for file in sorted(folder.glob("*/*.sql")):
        detector = load_detector(file, check=check)
        if detector.id in detectors:
            raise StreamwardenError(f"{detector.file}: the id is taken by {detectors[detector.id].file}.")
        detectors[detector.id] = detector
    if config is None:
        return detectors
    if unknown := set(config.detectors) - set(detectors):
        way_out = did_you_mean(min(unknown), detectors, "`streamwarden detectors list` lists all.")
        raise StreamwardenError(f"{config_path()}: detectors.{min(unknown)}: no such detector; {way_out}")
    for detector in detectors.values():
        _check_settings(detector, config)
    return {
        id_: detector
        for id_, detector in detectors.items()
        if id_ not in config.detectors or config.detectors[id_].enabled
    }


def load_detector(file: Path, *, check: bool = True) -> Detector:
    """Loads a detector from its file. The result is cached until the file changes.

    Raises:
        StreamwardenError: one line with file, key, and problem.
    """
    written = file.stat()
    return _load_as_written(file, written.st_mtime_ns, written.st_size, check)


@cache  # each page loads all detectors, and reading and validating them takes longer than rendering
def _load_as_written(file: Path, _mtime_ns: int, _size: int, check: bool) -> Detector:
    if check:
        return checked(_load_as_written(file, _mtime_ns, _size, False))
    header, sql = read_header(file)
    derived: dict[str, Any] = {"id": file.stem, "subject": file.parent.name, "sql": sql, "file": shown(file)}
    if taken := set(header) & set(derived):
        raise StreamwardenError(f"{shown(file)}: {min(taken)}: comes from the file's path, not from the header.")
    try:
        return TypeAdapter(Detector).validate_python({"params": {}, **header, **derived})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        message = "unknown key" if first["type"] == "unexpected_keyword_argument" else first["msg"]
        raise StreamwardenError(f"{shown(file)}: {key}: {message}") from None


def checked(detector: Detector) -> Detector:
    """The detector, if its header and its SQL fit each other.

    Raises:
        StreamwardenError: one line with file, key, and problem.
    """
    from streamwarden.detectors.check import problems

    if problem := next(problems(detector), None):
        raise StreamwardenError(f"{detector.file}: {problem}")
    return detector


def _check_settings(detector: Detector, config: Config) -> None:
    in_force = detector.params_in_force(config)
    settings = config.detectors.get(detector.id)
    for number, exception in enumerate(settings.exceptions if settings else ()):
        key = f"detectors.{detector.id}.exceptions.{number}."
        detector.with_params(in_force, exception.params, f"{key}params.")
        if unknown := set(exception.where) - {*detector.key_columns, "owner", "application"}:
            known = ", ".join((*detector.key_columns, "owner", "application"))
            raise StreamwardenError(f"{key}where.{min(unknown)}: {detector.id} identifies resources by: {known}.")


def changed(detector: Detector, file: Path) -> Detector:
    """A detector from another file, with id and subject of the given one, to backtest a change.

    Raises:
        StreamwardenError: as `load_detector`.
    """
    return replace(load_detector(file), id=detector.id, subject=detector.subject)


def _kind(value: ParameterValue) -> str:
    return {bool: "boolean", int: "number", float: "number"}.get(type(value), "text")

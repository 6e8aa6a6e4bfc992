"""Loads detectors: each SQL file's header as a frozen dataclass. The id is the file's name, the subject its folder.

The SQL says which case it is (`because`) and the figures, the header says under `says` what each case means and in
which words. That both fit is checked here, without a database; one line names the file and the key.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from streamwarden.base.catalog import WRITER_OF
from streamwarden.base.config import Config
from streamwarden.base.config.sql_pattern import compiles_in_postgres
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import SQL
from streamwarden.detectors import mechanisms, select
from streamwarden.detectors.resources import KINDS
from streamwarden.store.sql_header import read_header, shown
from streamwarden.rendering.readable import SEVERITIES, Severity
from streamwarden.rendering.templates import names_in

FOLDER = SQL / "detectors"
MAX_KEY_METRICS = 5
RESOURCE_VALUES = ("name", "owner", "application", "bootstrap_servers")
"""What every template may ask for beside figures: of the thing, and of its cluster in the config."""
NOT_METRICS = ("reason", "severity", "affected")
EXCEPTED = "excepted"
"""The because of things that the config leaves out (`off: true`)."""

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
class Case:
    """What a `because` means and in which words: Jinja templates over the row's figures and the parameters."""

    status: Status
    message: str
    severity: Severity | None = None
    """Of an alarm; a column `severity` of the row outweighs it."""
    actions: str = ""
    commands: tuple[str, ...] = ()
    """Lines to paste into a shell, figures as raw values."""
    is_not_applicable: bool = False
    """Of a skip that isn't for want of data: a detached volume, say."""

    @property
    def templates(self) -> tuple[str, ...]:
        return (self.message, self.actions, *self.commands)


@dataclass(frozen=True, config=_STRICT)
class Detector:
    """One detector as its file says it."""

    id: str
    subject: str
    title: str
    resource: str
    owner: str
    """Who keeps the rule; who gets the ticket is told by the thing."""
    maturity: Literal["experimental", "stable"]
    reads: tuple[str, ...]
    params: dict[str, Parameter]
    verdicts: dict[str, Case]
    clear_after_hours: int
    runbook: str
    limitations: str
    sql: str
    file: str
    key_metrics: tuple[str, ...] = ()
    """The figures that cards, tickets and mails show, in the order in which they convince."""
    open_after_hours: int = 1
    rule: str = ""
    """In words, for who wants to argue with it."""
    causes: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Mechanism (sql/mechanisms.yaml) → the becauses that set it going."""
    caused_by: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Mechanism → the becauses that it may lead to."""

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of the file: header and SQL."""
        return hashlib.sha256(self.sql.encode()).hexdigest()

    @cached_property
    def apps(self) -> tuple[str, ...]:
        """The Spark apps that write what it reads."""
        return tuple(sorted({WRITER_OF[table] for table in self.reads if table in WRITER_OF}))

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns that tell one thing from another."""
        return KINDS[self.resource]

    @property
    def severity(self) -> Severity:
        """The worst that it says."""
        return min((case.severity for case in self.verdicts.values() if case.severity), key=SEVERITIES.index)

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
            if isinstance(value, int | float) and not 0 <= value <= sys.float_info.max:
                raise StreamwardenError(f"{key}{name}: must be 0 or more and finite, not {value!r:.40}.")
            if isinstance(value, str) and self.params[name].unit in ("regex", "pattern"):
                try:
                    compiles_in_postgres(value)
                except ValueError as error:
                    raise StreamwardenError(f"{key}{name}: {error} (value: {value!r}).") from None
        return {**values, **replaced}


def load_detectors(folder: Path = FOLDER, config: Config | None = None, *, check: bool = True) -> dict[str, Detector]:
    """All detectors by id; with a config only those it leaves enabled, and its overrides are checked.

    Args:
        check: whether each file's SQL and words are held against each other; a DAG file has no time for it.

    Raises:
        StreamwardenError: one line that names file, key and reason.
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
        known = ", ".join(sorted(detectors))
        raise StreamwardenError(f"detectors.{min(unknown)}: no such detector; there are: {known}.")
    for detector in detectors.values():
        _check_settings(detector, config)
    return {
        id_: detector
        for id_, detector in detectors.items()
        if id_ not in config.detectors or config.detectors[id_].enabled
    }


def load_detector(file: Path, *, check: bool = True) -> Detector:
    """One file.

    Raises:
        StreamwardenError: one line that names file, key and reason.
    """
    written = file.stat()
    return _load_as_written(file, written.st_mtime_ns, written.st_size, check)


@cache  # a page asks for all detectors, and to read and check them takes longer than the rest of it
def _load_as_written(file: Path, _mtime_ns: int, _size: int, check: bool) -> Detector:
    header, sql = read_header(file)
    derived: dict[str, Any] = {"id": file.stem, "subject": file.parent.name, "sql": sql, "file": shown(file)}
    if taken := set(header) & set(derived):
        raise StreamwardenError(f"{shown(file)}: {min(taken)}: comes from the file's path, not from the header.")
    try:
        detector = TypeAdapter(Detector).validate_python({"params": {}, **header, **derived})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        message = "unknown key" if first["type"] == "unexpected_keyword_argument" else first["msg"]
        raise StreamwardenError(f"{shown(file)}: {key}: {message}") from None
    if check and (slip := next(_slips(detector), None)):
        raise StreamwardenError(f"{detector.file}: {slip}")
    return detector


def _check_settings(detector: Detector, config: Config) -> None:
    in_force = detector.params_in_force(config)
    settings = config.detectors.get(detector.id)
    for number, exception in enumerate(settings.exceptions if settings else ()):
        key = f"detectors.{detector.id}.except.{number}."
        detector.with_params(in_force, exception.params, f"{key}params.")
        if unknown := set(exception.where) - {*detector.identity, "owner", "application"}:
            known = ", ".join((*detector.identity, "owner", "application"))
            raise StreamwardenError(f"{key}where.{min(unknown)}: {detector.id} tells things apart by: {known}.")


def _slips(detector: Detector) -> Iterator[str]:
    """What doesn't fit between the header, its words and the SQL."""
    if detector.resource not in KINDS:
        yield f"about: {detector.resource}: no kind of thing; there are: {', '.join(KINDS)}."
        return
    columns = select.columns(detector.sql)
    yield from _parameter_slips(detector)
    yield from _case_slips(detector, columns)
    yield from mechanisms.slips(detector)
    yield from _column_slips(detector, columns)
    yield from _sentences(detector)


def _parameter_slips(detector: Detector) -> Iterator[str]:
    used = select.parameters(detector.sql)
    if difference := used - {"hour"} - set(detector.params):
        yield f":{min(difference)}: used in the SQL but not in the header's params."
    if difference := set(detector.params) - used:
        yield f"params.{min(difference)}: never used in the SQL."


def _case_slips(detector: Detector, columns: list[str]) -> Iterator[str]:
    said, cases = select.reasons(detector.sql), set(detector.verdicts)
    if difference := said - cases:
        yield f"says.{min(difference)}: the SQL gives this because, but the header has no words for it."
    if difference := cases - said:
        yield f"says.{min(difference)}: the SQL never gives this because."
    if EXCEPTED in cases:
        yield f"says.{EXCEPTED}: is the word for what the config leaves out."
    known = {*columns, *detector.params, *RESOURCE_VALUES} - {*NOT_METRICS}
    for reason, case in detector.verdicts.items():
        if (case.status == "firing") != (case.severity is not None):
            yield f"says.{reason}.severity: an alarm has one, and only an alarm."
        if case.is_not_applicable and case.status != "unknown":
            yield f"says.{reason}.is_not_applicable: only of a skip."
        for template in case.templates:
            try:
                unknown = names_in(template) - known
            except StreamwardenError as error:
                yield f"says.{reason}: {error}"
                continue
            if unknown:
                yield f"says.{reason}: {min(unknown)}: the SQL gives no such figure."


def _column_slips(detector: Detector, columns: list[str]) -> Iterator[str]:
    for column in ("reason", *detector.identity):
        if column not in columns:
            yield f"the select has no column {column}."
    if "*" in columns:
        yield "the last select must name its columns."
    if twice := {column for column in columns if columns.count(column) > 1}:
        yield f"the select has two columns {min(twice)}."
    if taken := set(columns) & (set(detector.params) | set(RESOURCE_VALUES)) - set(detector.identity):
        yield f"the column {min(taken)} has the name of a parameter, or of what every template has."
    if unknown := set(detector.key_metrics) - set(columns):
        yield f"convinces: {min(unknown)}: the SQL gives no such figure."
    if len(detector.key_metrics) > MAX_KEY_METRICS:
        yield f"convinces: at most {MAX_KEY_METRICS} figures convince."
    if len(since := [column for column in columns if re.search(r"(^|_)since$", column)]) > 1:
        yield f"a finding has one `since`, not {' and '.join(since)}."


_WORDING = re.compile(
    r"\b(?:format|round|to_char)\s*\(|::\s*numeric|as numeric|\b(?:1048576|1073741824)\b", re.IGNORECASE
)


def _sentences(detector: Detector) -> Iterator[str]:
    """Words and units are the header's and the figures' own."""
    body = detector.sql.partition("*/")[2]
    for string in select.strings(body):
        if re.search(r"[A-Z]\w+ \w+|\w+ \w+ \w+ \w+", string.text):
            yield f"the SQL holds a sentence ({string.text[:40]!r}): its place is `says`."
    code = re.sub(r"--[^\n]*|'(?:[^']|'')*'", "", body)
    if found := _WORDING.search(code):
        yield f"the SQL rounds, formats or divides units ({found[0]!r}): figures print themselves."


def changed(detector: Detector, file: Path) -> Detector:
    """The detector as another file has it, under its own name: to try a rule before it is in force.

    Raises:
        StreamwardenError: as `load_detector`.
    """
    return replace(load_detector(file), id=detector.id, subject=detector.subject)


def _kind(value: ParameterValue) -> str:
    return {bool: "boolean", int: "number", float: "number"}.get(type(value), "text")

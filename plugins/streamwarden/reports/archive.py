"""The archive: the reports in `reports.folder`, found by the names of their files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal

from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import PROJECT_ROOT

Ending = Literal["html", "pdf"]
MAX_FILES, MAX_BYTES = 100_000, 20_000_000
_NAME = re.compile(
    r"(?P<form>daily|weekly|monthly)-(?P<period>\d{4}-\d\d-\d\d|\d{4}-W\d\d|\d{4}-\d\d)(-(?P<owner>[A-Za-z0-9_.-]+))?"
)


@dataclass(frozen=True)
class Filed:
    """A report in the archive."""

    name: str
    """Name of its file, without extension."""
    form: str
    """daily, weekly, or monthly."""
    period: str
    begin: date
    owner: str | None
    """The owner as the file's name has it; None: all owners."""
    has_pdf: bool = False


def archive_folder(config: Config) -> Path:
    """The folder of the reports."""
    return PROJECT_ROOT / config.reports.folder


def filed_reports(config: Config, form: str | None = None) -> list[Filed]:
    """The reports in the archive, the newest first; those of all owners before those of one.

    Args:
        form: only these: daily, weekly, or monthly.

    Raises:
        StreamwardenError: the folder is not readable.
    """
    folder = archive_folder(config)
    try:
        names = set(_file_names(folder))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StreamwardenError(f"reports.folder {folder}: {error.strerror or error}.") from None
    parsed = (parse(name.removesuffix(".html"), names) for name in names if name.endswith(".html"))
    found = [one for one in parsed if one and form in (None, one.form)]
    return sorted(found, key=lambda one: (-one.begin.toordinal(), one.form, one.owner or ""))


def parse(name: str, names: Set[str] = frozenset()) -> Filed | None:
    """What a report's name says; None: this is not the name of a report. `names`: all files of the folder."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    form, period = match["form"], match["period"]
    try:
        if form == "daily":
            begin = date.fromisoformat(period)
        elif form == "weekly":
            begin = date.fromisocalendar(int(period[:4]), int(period.partition("W")[2]), 1)
        else:
            begin = date.fromisoformat(f"{period}-01")
    except ValueError:
        return None
    return Filed(name, form, period, begin, match["owner"], f"{name}.pdf" in names)


def read_filed(config: Config, name: str, ending: Ending) -> bytes | None:
    """The content of a report's file; None: there is no such report.

    Raises:
        StreamwardenError: the file is not readable, or larger than `MAX_BYTES`.
    """
    file = archive_folder(config) / f"{name}.{ending}"
    if parse(name) is None or file.is_symlink() or not file.is_file():
        return None
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise StreamwardenError(f"reports.folder {file.parent}: {file.name}: {error.strerror or error}.") from None
    if len(content) > MAX_BYTES:
        raise StreamwardenError(f"{file.name}: is larger than {MAX_BYTES // 1_000_000} MB; open the file itself.")
    return content


def _file_names(folder: Path) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for number, entry in enumerate(entries):
            if number >= MAX_FILES:
                return
            if entry.is_file(follow_symlinks=False):
                yield entry.name

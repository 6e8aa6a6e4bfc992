"""Shared parts of the commands: output, common options, config, and warehouse."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, ConsoleDimensions

from streamwarden.base.config import Config, config_path, load_config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.similar import did_you_mean

if TYPE_CHECKING:
    import sqlalchemy as sa

    from streamwarden.detectors import Detector

PIPED_COLUMNS = 100_000


class _Out(Console):
    """Output to the user: as wide as the terminal. In a pipe or a file nothing is cut, unless $COLUMNS is set."""

    @property  # type: ignore[misc]  # nothing sets it
    def size(self) -> ConsoleDimensions:
        """Width and height in characters."""
        found = super().size
        is_free = not self.is_terminal and "COLUMNS" not in os.environ
        return ConsoleDimensions(PIPED_COLUMNS, found.height) if is_free else found


out = _Out()
HourOption = Annotated[
    str | None, typer.Option(help="Start of the hour (UTC), e.g. 2026-11-21T05:00. Default: the last full hour.")
]
DetectorArgument = Annotated[str, typer.Argument(metavar="DETECTOR", help="Detector id; see `detectors list`.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print a JSON array.")]


def print_json(rows: Iterable[Mapping[Any, Any]]) -> None:
    """Prints rows as a JSON array of objects. Times are ISO 8601 in UTC."""
    from streamwarden.questions.formats import plain

    print(json.dumps([{name: plain(value) for name, value in row.items()} for row in rows], indent=2, default=str))


def config_if_any() -> Config:
    """The config, or defaults where there is no config file."""
    return load_config() if config_path().exists() else Config()


def warehouse() -> sa.Engine:
    """The warehouse of the config, migrated."""
    from streamwarden.store.migrate import migrated_warehouse

    return migrated_warehouse(load_config())


def require_cluster(connection: sa.Connection, cluster: str, option: str = "") -> None:
    """Raises StreamwardenError if there is no such cluster, in the config or in the newest day; `option`: its name."""
    from streamwarden.store.queries import ask

    known = {one.name for one in config_if_any().kafka} | {row["cluster"] for row in ask(connection, "plans/clusters")}
    if cluster not in known:
        there = f"there are: {', '.join(sorted(known))}" if known else "none is configured or was collected"
        raise StreamwardenError(f"{option} {cluster}: no such cluster; {there}.".lstrip())


def hour(text: str | None) -> datetime:
    """The hour that an option names; by default the last full one."""
    from streamwarden.base.hours import last_full_hour, parse_hour

    return parse_hour(text) if text else last_full_hour()


def detector(detector_id: str) -> Detector:
    """The detector that an argument names."""
    from streamwarden.detectors import load_detectors

    detectors = load_detectors()
    if detector_id not in detectors:
        way_out = did_you_mean(detector_id, detectors, "`streamwarden detectors list` lists all.")
        raise StreamwardenError(f"{detector_id}: no such detector; {way_out}")
    return detectors[detector_id]


def none_found(engine: sa.Engine, answer: str) -> str:
    """The answer that there is nothing; before the first evaluated hour it does not mean healthy."""
    from streamwarden.store.queries import ask

    with engine.connect() as connection:
        newest = ask(connection, "pages/newest_hour")[0]["hour"]
    return answer if newest else f"{answer} No hour has been evaluated yet: see `streamwarden run`."

"""Plots of findings: real SQL on a real warehouse, no plot without data, escaped names, limit lines."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import sqlalchemy as sa
from streamwarden.base.errors import StreamwardenError
from streamwarden.charts.draw import FOLDER, alt_text, draw_finding, in_the_dark, load_plot, plot_finding
from streamwarden.charts.header import Header
from streamwarden.charts.specification import has_values, specification, with_gaps
from streamwarden.detectors import load_detectors

HOUR = datetime(2026, 1, 5, 10, tzinfo=UTC)
HEADER = "/*\ntitle: Bucket of the volume\nunit: {unit}\nkind: {kind}\nwhy: reason\n*/\n"
LINES = (
    HEADER.format(unit="bytes/s", kind="lines")
    + """
select :hour + n * interval '1 minute' as at, s.series, s.factor * n * 1048576 as value
from generate_series(-60, 59) as n
cross join (values (cast(:id as text), 1), ('limit baseline', 0)) as s (series, factor)
where cast(:id as text) <> 'none'
union all
select :hour, 'empty', cast(null as double precision)"""
)
STACKED = (
    HEADER.format(unit="bytes", kind="stacked")
    + """
select * from (values
  (cast(:id as text), 'heap', 5e9), (cast(:id as text), 'off-heap', 4e9), (cast(:id as text), 'limit memory', 8e9),
  ('after a failure of one instance', 'heap', 5e9), ('after a failure of one instance', 'off-heap', 7e9),
  ('after a failure of one instance', 'limit memory', 8e9)
) as t (label, series, value) where :hour is not null"""
)
TABLE = (
    HEADER.format(unit="values", kind="table")
    + """
select '$.customer.' || n || cast(:id as text) as path, 'integer' as old_type, 'string' as new_type,
  n * 1000 as old_records, case when n > 1 then 4096 * n end as seen_bytes, :hour as first_at
from generate_series(1, 40) as n"""
)
EVIL = "<script>alert('$x^2$')</script>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, sql in (("lines", LINES), ("stacked", STACKED), ("table", TABLE)):
        (tmp_path / f"{name}.sql").write_text(sql)
    return tmp_path


@pytest.mark.parametrize("name", ["lines", "stacked", "table"])
def test_each_kind_is_drawn_with_alt_text_and_escaped_names(warehouse: sa.Engine, folder: Path, name: str) -> None:
    svg = draw_finding(warehouse, name, HOUR, {"id": EVIL}, "svg", folder)
    assert svg is not None and b"<script" not in svg.content
    root = ElementTree.fromstring(svg.content)  # noqa: S314 our own file
    assert root.get("role") == "img" and root.get("aria-label") == svg.alt
    assert svg.alt.startswith("Bucket of the volume, hour 2026-01-05 10:00 UTC.")
    png = draw_finding(warehouse, name, HOUR, {"id": EVIL}, "png", folder)
    assert png is not None and png.content.startswith(b"\x89PNG") and len(png.content) < 200_000


def test_units_fit_the_values_and_limits_are_labeled(warehouse: sa.Engine, folder: Path) -> None:
    drawing = draw_finding(warehouse, "stacked", HOUR, {"id": "orders"}, "svg", folder)
    assert drawing is not None and b"GiB" in drawing.content
    assert b">Memory<" in drawing.content and b"limit memory" not in drawing.content + drawing.alt.encode()
    assert "orders, heap 4.66 GiB" in drawing.alt
    counted = FOLDER / "broker_partitions_too_many.sql"
    assert alt_text(load_plot(counted)[0], [{"label": "1", "series": "leaders", "value": 4321}], HOUR).endswith(
        "1, leaders 4,321 partitions."
    )
    drawing = draw_finding(warehouse, "lines", HOUR, {"id": "vol"}, "svg", folder)
    assert drawing is not None and b"MiB/s" in drawing.content and "empty not known" in drawing.alt


def test_a_second_panel_has_its_own_unit_and_may_be_unknown(warehouse: sa.Engine, tmp_path: Path) -> None:
    head = HEADER.format(unit="bytes/s", kind="lines").replace(
        "why", "below: {title: Lag of groups, unit: seconds}\nwhy"
    )
    sql = """
        select :hour as at, 'reads' as series, 5e6 as value, false as is_below
        union all select :hour, 'group late', cast({lag} as double precision), true"""
    for lag, expected in (("7200", "group late 2 hours"), ("null", "group late not known")):
        (tmp_path / "two.sql").write_text(head + sql.format(lag=lag))
        drawing = draw_finding(warehouse, "two", HOUR, {}, "svg", tmp_path)
        assert drawing is not None and b"Lag of groups" in drawing.content
        assert "reads 4.77 MiB/s" in drawing.alt and expected in drawing.alt


def test_a_line_has_a_break_where_points_are_missing() -> None:
    def at(minute: int) -> datetime:
        return HOUR + timedelta(minutes=minute)

    points = [(at(minute), 1.0) for minute in (0, 1, 2, 3, 20, 21)]
    assert [minute for minute, value in with_gaps(points) if math.isnan(value)] == [at(4)]
    assert with_gaps(points[:2]) == points[:2]


def test_the_same_data_gives_the_same_file(warehouse: sa.Engine, folder: Path) -> None:
    drawings = [draw_finding(warehouse, "lines", HOUR, {"id": "vol"}, "svg", folder) for _ in range(2)]
    assert drawings[0] == drawings[1]


def test_without_rows_there_is_no_plot(warehouse: sa.Engine, folder: Path) -> None:
    assert draw_finding(warehouse, "lines", HOUR, {"id": "none"}, "svg", folder) is None
    assert plot_finding(warehouse, "no_such_detector", HOUR, {}, "svg") is None


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.sql")), ids=lambda file: file.stem)
def test_every_plot_belongs_to_a_detector_and_runs_on_the_schema(warehouse: sa.Engine, file: Path) -> None:
    load_plot(file)
    identity = dict.fromkeys(load_detectors()[file.stem].identity, "nobody")
    assert plot_finding(warehouse, file.stem, HOUR, identity, "svg") is None


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select 1", "must begin with a comment"),
        (HEADER.format(unit="x", kind="pie") + "select 1", "kind: Input should be"),
        (HEADER.format(unit="x", kind="lines") + "select nothing", 'column "nothing" does not exist'),
        (HEADER.format(unit="x", kind="lines") + "select 1 as at", "the select has no column series"),
        (HEADER.format(unit="x", kind="stacked") + "select 1 as at where false", "the select has no column label"),
    ],
)
def test_an_error_in_a_plot_is_one_line_with_the_file(
    warehouse: sa.Engine, tmp_path: Path, sql: str, expected: str
) -> None:
    (tmp_path / "bad.sql").write_text(sql)
    with pytest.raises(StreamwardenError, match=expected) as error:
        draw_finding(warehouse, "bad", HOUR, {}, "svg", tmp_path)
    assert "bad.sql" in str(error.value) and "\n" not in str(error.value)


def test_a_plot_for_a_dark_page_has_a_dark_background() -> None:
    svg = b'<svg><rect style="fill: #ffffff"/><text style="fill: #1f2328">#topic</text></svg>'
    assert in_the_dark(svg) == b'<svg><rect style="fill: #161b22"/><text style="fill: #e6edf3">#topic</text></svg>'


def test_columns_of_a_table_that_differ_in_their_unit_alone_have_two_titles(
    warehouse: sa.Engine, tmp_path: Path
) -> None:
    sql = "select 3000 as limit_iops, 125 as limit_mib_s where cast(:id as text) is not null and :hour is not null"
    (tmp_path / "options.sql").write_text(HEADER.format(unit="values", kind="table") + sql)
    png = draw_finding(warehouse, "options", HOUR, {"id": "x"}, "png", tmp_path)
    assert png is not None and png.alt.endswith("Table of 1 row: Limit (IOPS), Limit (MiB/s).")


@pytest.mark.parametrize(
    ("kind", "series", "value", "expected"),
    [("lines", "a", None, False), ("lines", "limit a", 1.0, True), ("lines", "a", 0.0, True),
     ("stacked", "a", None, False), ("stacked", "limit a", 1.0, False), ("stacked", "a", 0.0, True),
     ("table", "a", None, True)],
)  # fmt: skip
def test_the_page_and_the_chart_agree_whether_there_is_a_value(
    kind: Any, series: str, value: float | None, expected: bool
) -> None:
    header = Header(title="Lag", unit="records", kind=kind, why="")
    rows = [{"at": HOUR, "label": "x", "series": series, "value": value}]
    assert has_values(header, rows) == expected
    assert (specification(header, rows, HOUR) is not None) == expected

"""The specification of a resource's timeline: lanes, metrics with limits, changes, and its bounds."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from streamwarden.charts.picture import picture
from streamwarden.charts.timeline import MAX_BARS, MAX_LANES, Timeline, timeline_chart

from tests.sql.rows import HOUR

NASTY = 'a"><script>\u202eb' + "x" * 200


def period(detector: str, status: str, first: int, last: int, severity: str | None = None) -> dict[str, Any]:
    """Hours before the newest one, from the `first` to the `last`."""
    begin, end = HOUR - timedelta(hours=first), HOUR - timedelta(hours=last)
    return {"detector": detector, "status": status, "severity": severity, "message": NASTY} | {
        "since": begin, "last_hour": end,
    }  # fmt: skip


def known(hours: int, **metrics: Any) -> list[dict[str, Any]]:
    return [{"hour": HOUR - timedelta(hours=n), "state": None} | metrics for n in range(hours - 1, -1, -1)]


def panels(data: Timeline) -> dict[str, str]:
    """Title of each panel, and its JSON."""
    chart = timeline_chart(data, is_interactive=True)
    assert chart is not None
    return {panel["title"][0]: json.dumps(panel, ensure_ascii=False) for panel in chart.spec["vconcat"]}


def rows(data: Timeline, having: str = "when") -> list[dict[str, Any]]:
    """The rows of the chart that have a field: `when` have the bars, `v` the points of metrics."""
    chart = timeline_chart(data)
    assert chart is not None
    found: list[dict[str, Any]] = []

    def visit(part: Any) -> None:
        if isinstance(part, dict):
            values = part.get("data", {}).get("values", []) if isinstance(part.get("data"), dict) else []
            found.extend(row for row in values if having in row and row not in found)
            part = list(part.values())
        for inner in part if isinstance(part, list) else []:
            visit(inner)

    visit(chart.spec["vconcat"])
    return found + [row for named in chart.spec["datasets"].values() for row in named if having in row]


def test_findings_metrics_and_changes_have_the_same_time_axis() -> None:
    periods = [period("ok", "ok", 23, 0), period("disk", "ok", 23, 6), period("disk", "firing", 5, 0, "critical")]
    change = {"hour": HOUR, "at": HOUR, "text": "Size: 100 GiB → 200 GiB"}
    data = Timeline(HOUR, 24, periods, {"disk": "Disk filling up", "ok": "Fine"},
                    known(24, iops_mean=700.0, baseline_iops=900.0, lag_seconds_max=60.0, worst_topic="t"), [change],
                    {"lag_seconds_max": ("Late", 600.0)})  # fmt: skip
    drawn = panels(data)
    assert list(drawn) == ["Findings and changes", "IOPS mean", "Lag max (minutes)"]
    assert "Baseline" in drawn["IOPS mean"] and "Late" in drawn["Lag max (minutes)"]
    domain = f'"domain": [{int(data.start.timestamp())}000, {int(data.finish.timestamp())}000]'
    for title, text in drawn.items():
        assert domain in text and "change:N" not in title
    chart = timeline_chart(data)
    assert chart is not None and chart.alt.startswith("2026-01-04 11:00 UTC to 2026-01-05 11:00 UTC. Disk filling up: ")
    lanes = {row["title"]: row["l"] for row in rows(data)}
    assert lanes == {"Disk filling up": "l0", "Fine": "l1"}, "the worst first"
    assert b"Disk filling up" in picture(chart.spec, "svg", chart.alt)


@pytest.mark.parametrize("hours", [168, 840])
def test_a_finding_that_changes_each_hour_has_a_bounded_number_of_bars(hours: int) -> None:
    flapping = [period("d", "firing" if n % 2 else "ok", n, n, "warning" if n % 2 else None) for n in range(hours)]
    bars = rows(Timeline(HOUR, hours, flapping, {}, [], []))
    assert len(bars) <= MAX_BARS and {row["k"] for row in bars} == {"warning"}
    assert bars[0]["t"] == (HOUR - timedelta(hours=hours - 1)).timestamp() * 1000
    assert max(row["end"] for row in bars) == (HOUR + timedelta(hours=1)).timestamp() * 1000


def test_many_detectors_and_hostile_texts_are_bounded() -> None:
    periods = [period(f"d{n:02}", "firing", 3, 0, "info") for n in range(MAX_LANES + 5)]
    data = Timeline(HOUR, 24, periods, {f"d{n:02}": NASTY for n in range(40)}, [], [])
    chart = timeline_chart(data)
    assert chart is not None
    text = json.dumps(chart.spec, ensure_ascii=False)
    assert "5 more detectors not drawn" in text and "\u202e" not in text
    assert b"<script>" not in picture(chart.spec, "svg", chart.alt)


def test_a_short_peak_is_visible_in_35_days_and_the_lowest_balance_too() -> None:
    hours = known(840, lag_records=1.0, burst_balance_min_percent=90.0)
    hours[400] |= {"lag_records": 5000.0, "burst_balance_min_percent": 3.0}
    drawn = panels(Timeline(HOUR, 840, [], {}, hours, []))
    values = {row["v"] for row in rows(Timeline(HOUR, 840, [], {}, hours, []), "v")}
    assert values == {1.0, 5000.0, 90.0, 3.0} and list(drawn) == ["Lag (records)", "Burst balance min (%)"]


def test_hours_without_a_value_interrupt_the_line_and_without_data_there_is_no_chart() -> None:
    hours = known(24, lag_records=1.0)
    hours[12]["lag_records"] = None
    assert [row["v"] for row in rows(Timeline(HOUR, 24, [], {}, hours, []), "v")].count(None) == 1
    assert timeline_chart(Timeline(HOUR, 24, [], {}, known(24, lag_records=None), [])) is None


def test_many_changes_have_no_lines_through_the_metrics() -> None:
    hours = known(24, lag_records=1.0)
    changes = [{"hour": row["hour"], "at": row["hour"], "text": "1 rebalance"} for row in hours]
    few = panels(Timeline(HOUR, 24, [], {}, hours, changes[:2]))
    many = panels(Timeline(HOUR, 24, [], {}, hours, changes))
    assert "1 rebalance" in few["Lag (records)"] and "1 rebalance" not in many["Lag (records)"]
    assert "24 changes" in many["Findings and changes"] and "2 changes" in few["Findings and changes"]

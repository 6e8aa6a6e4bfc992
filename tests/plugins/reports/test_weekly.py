"""The weekly report on a real warehouse."""

from __future__ import annotations

import re
from datetime import date, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from streamwarden.base.config import Config, Reports
from streamwarden.base.errors import StreamwardenError
from streamwarden.charts.draw import load_plot
from streamwarden.reports import monday_of, render_weekly, weekly, write_report
from streamwarden.tickets import reconcile

from tests.plugins.tickets.scenario import DETECTORS, DeliveryScenario, hour
from tests.sql.rows import insert_row

MONDAY = date(2026, 1, 5)
EVIL = "<script>alert(1)</script>"
WEEK = 7 * 24


@pytest.fixture
def scenario(warehouse: sa.Engine) -> DeliveryScenario:
    """One finding that is open since the week before; in this week one of a hostile name, and one resolved."""
    scenario = DeliveryScenario(warehouse)
    scenario.evaluate(-WEEK, {"old": "firing"}, owner="storage")
    reconcile(warehouse, Config(), DETECTORS)
    scenario.evaluate(0, {"old": "firing", EVIL: "firing", "b": "firing"}, owner="storage")
    reconcile(warehouse, Config(), DETECTORS)
    for number in (1, 2):
        scenario.evaluate(
            number, {"old": "firing", EVIL: "firing", "b": "ok", "c": "unknown"}, coverage="failed", owner="storage"
        )
        reconcile(warehouse, Config(), DETECTORS)
    return scenario


def _words(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html.partition("</style>")[2]))


def test_the_report_compares_with_the_week_before_and_lists_the_oldest_open_findings(
    scenario: DeliveryScenario,
) -> None:
    report = render_weekly(scenario.engine, Config(), MONDAY, now=hour(3))
    assert report.subject == "Streamwarden 2026-W02: 2 open (2 critical), 2 new, 1 closed"
    text = _words(report.html)
    for expected in (
        "2026-01-05 to 2026-01-11, UTC. 3 of 13 past hours were evaluated.",
        "2 open 1 the week before",
        "10 past hours of this week were not evaluated",
        "Median time to close ebs_volume_starving 2 1 2 2 h",
        "ebs_volume_starving title: old critical 2025-12-29 10:00 UTC (± 1 h) storage",
        "storage 2 2 2 1",
        "failed",
    ):
        assert expected in text, expected
    assert text.index("title: old critical") < text.index("&lt;script&gt;") and "<script" not in report.html
    assert next(iter(report.images.values())).startswith(b"\x89PNG") and 'alt="' in report.html
    for expected in ("2 open (2 critical), 2 new, 1 closed; the week before 1 open", "title: old (storage)"):
        assert expected in report.text, expected


def test_the_oldest_findings_are_listed_even_if_others_are_more_severe(
    scenario: DeliveryScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weekly, "MOST_LINES", 1)
    text = _words(render_weekly(scenario.engine, Config(), MONDAY, now=hour(3)).html)
    oldest = text[text.index("Longest open findings") :]
    assert "title: old" in oldest and "and 1 more" in oldest
    assert "&lt;script&gt;" not in oldest.partition("and 1 more")[0]


def test_costs_are_listed_first(scenario: DeliveryScenario) -> None:
    volume = {"account": "1", "volume_type": "gp3", "size_gib": 100, "provisioned_iops": 3000,
              "provisioned_throughput_mib_s": 125}  # fmt: skip
    price = {
        "hour": hour(2),
        "region": "r",
        "as_of": MONDAY,
        "source": "AWS",
        "gp3_gib": 0.1,
        "gp3_iops": 0.005,
        "gp3_mib_s": 0.04,
    }
    with scenario.engine.begin() as connection:
        insert_row(connection, "inventory.ebs_price", price)
        for volume_id, application, region in (("v1", "orders", "r"), ("v2", "orders", "unpriced")):
            row = volume | {"hour": hour(2), "volume_id": volume_id, "application": application, "region": region}
            insert_row(connection, "inventory.volume_hourly", row)
    report = render_weekly(scenario.engine, Config(), MONDAY, now=hour(3))
    text = _words(report.html)
    assert "EBS volumes cost at least $10 a month." in text
    assert "EBS volumes orders 2 volumes, 1 without a price $10" in text
    assert text.index("$10 a month") < text.index("the week before")
    assert "* EBS volumes, orders: $10 (2 volumes, 1 without a price)" in report.text
    for shown in (text, report.text):
        assert f"AWS list prices of {MONDAY}." in shown
    with scenario.engine.begin() as connection:
        connection.exec_driver_sql("update inventory.ebs_price set as_of = as_of - 100")
    old = render_weekly(scenario.engine, Config(), MONDAY, now=hour(3))
    for shown in (_words(old.html), old.text):
        assert f"AWS list prices of {MONDAY - timedelta(days=100)}, more than 90 days old." in shown


def test_the_broker_with_the_least_network_headroom_after_losing_a_peer_is_named(scenario: DeliveryScenario) -> None:
    def store_brokers(*brokers: tuple[str, int, float, float]) -> None:
        with scenario.engine.begin() as connection:
            for cluster, broker_id, comes, goes in brokers:
                row = {"hour": hour(2), "cluster": cluster, "broker_id": broker_id, "endpoint": f"e{broker_id}",
                       "samples": 3, "instance_id": f"{cluster}-{broker_id}", "bytes_in_per_second": comes,
                       "bytes_out_per_second": goes, "replication_bytes_in_per_second": 0,
                       "replication_bytes_out_per_second": 0}  # fmt: skip
                insert_row(connection, "metrics.broker_hourly", row)

    def store_limits(instance_id: str, **limits: float) -> None:
        with scenario.engine.begin() as connection:
            for direction, limit in limits.items():
                row = {"hour": hour(2), "account": "1", "region": "r", "instance_id": instance_id,
                       "direction": direction, "baseline_bytes_per_second": limit}  # fmt: skip
                insert_row(connection, "metrics.instance_network_hourly", row)

    def rendered() -> tuple[str, str]:
        report = render_weekly(scenario.engine, Config(), MONDAY, now=hour(3))
        assert "<script" not in report.html
        return _words(report.html), report.text

    assert "Capacity headroom" not in rendered()[0] and "CAPACITY HEADROOM" not in rendered()[1], "no broker is known"
    store_brokers(("a", 1, 30, 10), ("a", 2, 30, 20), (EVIL, 1, 5, 40), (EVIL, 2, 5, 60))
    html, text = rendered()
    assert (
        "Not evaluated: network limits or loads of brokers are not reported" in html
        and "Not evaluated: network limits" in text
    )
    store_limits("a-1", **{"in": 100, "out": 100})
    store_limits(f"{EVIL}-1", **{"in": 100, "out": 200})
    html, text = rendered()
    # a-1 receives 30 and 30 more, of 100; the other sends 40 and 60 more, of 200.
    assert (
        "Network: if the busiest peer fails, broker 1 of a would receive 60 % of its instance's baseline bandwidth"
        " (now 30 %), the highest of 2 brokers; 2 more are not known."
    ) in html.replace("&#39;", "'")
    line = "* Network if the busiest peer fails: broker 1 of a, 60 % in (30 % now; highest of 2 brokers, 2 not known)"
    assert line in text
    store_limits(f"{EVIL}-2", **{"in": 10, "out": 80})
    store_limits("a-2", **{"in": 100, "out": 100})
    html, text = rendered()
    assert "fails, broker 2 of &lt;script&gt;" in html and "would send 150 % of its instance" in html
    assert "(now 75 %), the highest of 4 brokers." in html and "150 % out (75 % now; highest of 4 brokers)" in text


def test_a_week_without_evaluations_says_so(warehouse: sa.Engine) -> None:
    report = render_weekly(warehouse, Config(), MONDAY)
    assert report.subject == "Streamwarden 2026-W02: no hour was evaluated"
    text = _words(report.html)
    assert "was evaluated" in text and "No volumes and no logs found." in text
    assert "the week before" not in text and "No findings: no hour was evaluated." in text
    assert "– open – critical – new – closed" in text and ">0</span>" not in report.html


def test_durations_of_tickets_have_the_precision_of_hours(warehouse: sa.Engine) -> None:
    scenario = DeliveryScenario(warehouse)
    scenario.evaluate(0, {"a": "firing", "b": "firing"})
    reconcile(warehouse, Config(), DETECTORS)
    with warehouse.begin() as connection:
        closed = "update tickets.ticket set state = 'closed', closed_hour = opened_hour where resource_name = 'a'"
        connection.execute(sa.text(closed))
    for now in (hour(0), hour(1), hour(2)):
        report = render_weekly(warehouse, Config(), MONDAY, now=now)
        text = _words(report.html)
        assert "Median time to close ebs_volume_starving 2 1 1 under 1 h" in text
        began = "2026-01-05 10:00 UTC (± 1 h)"
        assert f"{began} unassigned" in text and f"since {began}:" in report.text
        assert "0.0000" not in report.html and "(0 s)" not in report.html


def test_the_week_that_has_not_begun_is_refused(warehouse: sa.Engine) -> None:
    with pytest.raises(StreamwardenError, match=r"^2026-01-12: is in the future; the newest report is that of 2026-01"):
        render_weekly(warehouse, Config(), MONDAY + timedelta(days=7), now=hour(3))


@pytest.mark.parametrize("statuses", [{"a": "ok"}, {"a": "firing"}])
def test_no_plot_without_a_line_to_draw(warehouse: sa.Engine, statuses: dict[str, str]) -> None:
    """Nothing has ever been open, or only one day is known."""
    scenario = DeliveryScenario(warehouse)
    scenario.evaluate(0, statuses)
    if statuses["a"] == "ok":
        scenario.evaluate(-WEEK, statuses)
    reconcile(warehouse, Config(), DETECTORS)
    report = render_weekly(warehouse, Config(), MONDAY, now=hour(3))
    assert report.images == report.dark_images == {} and "<img" not in report.html


def test_days_before_the_first_evaluation_are_unknown(scenario: DeliveryScenario) -> None:
    folder = weekly.SQL / "reports" / "charts"
    _, sql = load_plot(folder / "open_tickets.sql")
    rows = scenario.rows(sql, hour=hour(3))
    known = [row["at"] for row in rows if row["value"] is not None and row["series"] == "critical"]
    assert min(known) == hour(3) - timedelta(days=7) and len(known) == 8 and len(rows) == 2 * 28


def test_a_volume_that_is_advised_to_become_cheaper_could_save_money(warehouse: sa.Engine) -> None:
    scenario = DeliveryScenario(warehouse)
    with warehouse.begin() as connection:
        insert_row(connection, "detect.detector", {"hour": None, "detector": "ebs_volume_starving", "title": "Volume"})
        insert_row(connection, "inventory.volume_hourly", {"hour": hour(0), "volume_id": "v1"})
    prices = {"price_usd_per_month": 150.0, "advised_price_usd_per_month": 30.0}
    scenario.evaluate(0, {"v1": "firing"}, metrics=prices)
    assert "could be saved Volume 1 finding $120" in _words(render_weekly(warehouse, Config(), MONDAY).html)
    for dearer in (prices | {"advised_price_usd_per_month": 300.0}, {"price_usd_per_month": 150.0}):
        scenario.evaluate(0, {"v1": "firing"}, metrics=dearer)
        assert "could be saved" not in _words(render_weekly(warehouse, Config(), MONDAY).html)


def test_a_healthy_week(warehouse: sa.Engine) -> None:
    DeliveryScenario(warehouse).evaluate(0, {"a": "ok"})
    report = render_weekly(warehouse, Config(), MONDAY)
    assert report.subject == "Streamwarden 2026-W02: nothing open, 0 closed"
    assert "No findings." in _words(report.html) and "Longest open findings" not in report.html


def test_the_week_begins_on_monday(scenario: DeliveryScenario, tmp_path: Path) -> None:
    assert [monday_of(MONDAY + timedelta(days=n)) for n in (-1, 0, 6)] == [MONDAY - timedelta(days=7), MONDAY, MONDAY]
    report = render_weekly(scenario.engine, Config(), date(2025, 12, 29))
    assert report.subject.startswith("Streamwarden 2026-W01: 1 open"), "the ISO week of its Thursday"
    file = write_report(report, Config(reports=Reports(folder=tmp_path)))
    assert file.name == "weekly-2026-W01.html" and "cid:" not in file.read_text()

"""The monthly report on a real warehouse."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from streamwarden.base.config import Config, Reports
from streamwarden.base.errors import StreamwardenError
from streamwarden.reports import month_of, monthly_owners, render_monthly, write_pdf, write_report

from tests.plugins.tickets.scenario import DeliveryScenario, hour
from tests.sql.rows import insert_row

FIRST = date(2026, 1, 1)
EVIL = "<script>alert(1)</script>"
GIB = 2**30
PLACE = {"account": "1", "region": "r"}


def _words(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html.partition("</style>")[2]))


@pytest.fixture
def scenario(warehouse: sa.Engine) -> DeliveryScenario:
    """A log directory that grows by 1 GiB a day, two owners' volumes, one of which became cheaper."""
    scenario = DeliveryScenario(warehouse)
    with warehouse.begin() as connection:
        ensure = "select public.ensure_day(cast(:day as date) - n) from generate_series(-1, 40) as n"
        connection.execute(sa.text(ensure), {"day": hour(0).date()})
        for ago in range(10):
            row = {"hour": hour(0) - timedelta(days=ago), "cluster": "c", "broker_id": 1, "log_dir": EVIL}
            row |= {"total_bytes": 100 * GIB, "usable_bytes": (20 + ago) * GIB}
            insert_row(connection, "metrics.log_dir_hourly", row)
            broker = {"hour": hour(0) - timedelta(days=ago), "cluster": "c", "broker_id": 1, "endpoint": "e"}
            broker |= {"open_file_descriptors": 500.0, "max_file_descriptors": 1000.0}
            insert_row(connection, "metrics.broker_hourly", broker)
        price = PLACE | {"as_of": FIRST, "source": "AWS", "gp3_gib": 0.1, "gp3_iops": 0.005, "gp3_mib_s": 0.04}
        del price["account"]
        volume = PLACE | {"volume_type": "gp3", "provisioned_iops": 3000, "provisioned_throughput_mib_s": 125}
        insert_row(connection, "inventory.ebs_price", price | {"hour": hour(0)})
        for at, size in ((hour(0) - timedelta(days=6), 200), (hour(0), 100)):
            for name, owner, gib in (("v1", "storage", size), ("v2", EVIL, 50)):
                row = volume | {"hour": at, "volume_id": name, "owner": owner, "application": "orders", "size_gib": gib}
                insert_row(connection, "inventory.volume_hourly", row)
    return scenario


def test_capacity_has_dates_and_unknown_kinds_are_named(scenario: DeliveryScenario) -> None:
    report = render_monthly(scenario.engine, Config(), FIRST, now=hour(1))
    text = _words(report.html)
    assert "80.0 GiB (80 %) 100.0 GiB 2026-01-25" in text, "20 GiB are left at 1 GiB a day, from 5 January 00:00"
    assert "500 (50 %) 1,000 not within a year" in text
    assert "Network of instances Not evaluated: use or limit is not reported." in text
    assert "<script" not in report.html and "1 resource below reaches its limit within 90 days" in text
    assert "reaches its limit on 2026-01-25" in report.text and "* network: Not evaluated" in report.text
    assert next(iter(report.images.values())).startswith(b"\x89PNG") and "Disk 80 %" in report.html


def test_fewer_than_seven_days_give_no_date(scenario: DeliveryScenario) -> None:
    with scenario.engine.begin() as connection:
        delete = "delete from metrics.log_dir_hourly where hour < :until"
        connection.execute(sa.text(delete), {"until": hour(0) - timedelta(days=5)})
    assert "Not evaluated: 6 days of data" in _words(render_monthly(scenario.engine, Config(), FIRST, now=hour(1)).html)


def test_costs_have_a_trend_by_owner_and_application(scenario: DeliveryScenario) -> None:
    text = _words(render_monthly(scenario.engine, Config(), FIRST, now=hour(1)).html)
    assert "$15 a month; since the month before: −$10 (−40 %)" in text
    assert "storage orders 1 $10 −$10 (−50 %)" in text and "orders 1 $5 unchanged" in text
    own = render_monthly(scenario.engine, Config(), FIRST, now=hour(1), owner="storage")
    assert "$10 a month" in _words(own.html) and "$5" not in own.html and own.owner == "storage"
    assert own.subject.startswith("Streamwarden 2026-01 for storage:")


def test_advice_that_was_acted_on_has_its_saving(scenario: DeliveryScenario) -> None:
    with scenario.engine.begin() as connection:
        row = {"hour": None, "detector": "ebs_volume_starving", "title": "Volume"}
        insert_row(connection, "detect.detector", row)
    saving = {"price_usd_per_month": 150.0, "advised_price_usd_per_month": 30.0}
    scenario.evaluate(0, {"v1": "firing", "v2": "firing"}, metrics=saving, owner="storage")
    scenario.evaluate(1, {"v1": "ok", "v2": "firing"}, metrics=saving, owner="storage")
    report = render_monthly(scenario.engine, Config(), FIRST, now=hour(1))
    text = _words(report.html)
    assert "Implemented recommendations save $120 a month." in text
    assert re.search(r"v1 storage 2026-01-05 \$120", text) and "saves $120 a month" in report.text
    scenario.evaluate(2, {"v1": "unknown", "v2": "firing"}, metrics=saving, owner="storage")
    unknown = _words(render_monthly(scenario.engine, Config(), FIRST, now=hour(2)).html)
    assert "Implemented recommendations None." in unknown, "a resource that was not evaluated has saved nothing yet"


def test_owners_and_files(scenario: DeliveryScenario, tmp_path: Path) -> None:
    assert monthly_owners(scenario.engine, FIRST) == sorted([EVIL, "storage"])
    config = Config(reports=Reports(folder=tmp_path))
    report = render_monthly(scenario.engine, config, FIRST, now=hour(1), owner="../x")
    assert write_report(report, config) == tmp_path / "monthly-2026-01-.._x.html"
    assert (
        write_report(render_monthly(scenario.engine, config, FIRST, now=hour(1)), config).name == "monthly-2026-01.html"
    )
    assert month_of(date(2026, 2, 28)) == date(2026, 2, 1)


def test_the_pdf_has_the_text_and_loads_nothing(scenario: DeliveryScenario, tmp_path: Path) -> None:
    config = Config(reports=Reports(folder=tmp_path))
    report = render_monthly(scenario.engine, config, FIRST, now=hour(1))
    file = write_pdf(report, config)
    assert (
        file.name == "monthly-2026-01.pdf" and file.read_bytes().startswith(b"%PDF-") and file.stat().st_size > 10_000
    )
    outside = replace(report, html='<img src="http://127.0.0.1:9/x.png"><img src="file:///etc/hostname">text')
    assert write_pdf(outside, config).read_bytes().count(b"/Subtype /Image") == 0


def test_an_empty_and_a_future_month(warehouse: sa.Engine) -> None:
    text = _words(render_monthly(warehouse, Config(), FIRST, now=hour(1)).html)
    assert "No volumes found." in text and text.count("Not evaluated: use or limit is not reported.") == 5
    with pytest.raises(StreamwardenError, match="is in the future"):
        render_monthly(warehouse, Config(), date(2026, 2, 1), now=hour(1))

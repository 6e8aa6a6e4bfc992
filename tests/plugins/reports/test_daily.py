"""The daily report on a real warehouse, and its mail through a real SMTP server."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import smtplib
from datetime import date, timedelta
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa
from streamwarden.base.config import Config, Reports, Tickets
from streamwarden.base.config.tickets import Route
from streamwarden.base.config.trackers import Console, Mail
from streamwarden.base.errors import StreamwardenError
from streamwarden.detectors import load_detectors
from streamwarden.rendering.readable import clean
from streamwarden.reports import daily, daily_owners, mail, mail_owner, mail_report, render_daily, write_report
from streamwarden.tickets import reconcile
from streamwarden.tickets.sinks.mail import Tracker as MailTracker

from tests.plugins.reports.conftest import Inbox
from tests.plugins.tickets.scenario import DETECTORS, DeliveryScenario, fingerprint_of, hour
from tests.sql.rows import insert_row

DAY = date(2026, 1, 5)
EVIL = "<script>alert(1)</script>"
PLOT = """/*
title: Bucket
unit: percent
kind: lines
why: reason
*/
select :hour + n * interval '1 minute' as at, cast(:volume_id as text) as series, 100 - n as value
from generate_series(0, 59) as n"""


@pytest.fixture
def scenario(warehouse: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DeliveryScenario:
    """A day with an open finding of a hostile name, one closed, one unknown, and a source that did not respond."""
    (tmp_path / "ebs_volume_starving.sql").write_text(PLOT)
    monkeypatch.setattr(daily, "draw_finding", lambda *args: _draw(*args, tmp_path))
    scenario = DeliveryScenario(warehouse)
    metrics = {"burst_balance_percent": 1.5, "size_gib": 10, "account_name": "x"}
    fields = {
        "metrics": metrics,
        "key_metrics": ("burst_balance_percent", "size_gib"),
        "actions": (f"Make {clean(EVIL)} larger.",),
    }
    scenario.evaluate(0, {EVIL: "firing", "b": "firing", "c": "unknown"}, **fields, message=f"{EVIL} is empty.")
    reconcile(warehouse, Config(), DETECTORS)
    for number in (1, 2):
        scenario.evaluate(number, {EVIL: "firing", "b": "ok", "c": "unknown"}, **fields, coverage="failed")
    scenario.evaluate(2, {}, "app_memory_heavy", detector_run="blocked")
    reconcile(warehouse, Config(), DETECTORS)
    return scenario


def _draw(engine: sa.Engine, *args: Any) -> Any:
    from streamwarden.charts.draw import draw_finding

    return draw_finding(engine, *args)


def test_the_report_lists_open_new_closed_and_not_evaluated(scenario: DeliveryScenario) -> None:
    report = render_daily(scenario.engine, Config(), DAY, now=hour(3))
    assert report.subject == "Streamwarden 2026-01-05: 1 open (1 critical), 2 new, 1 closed"
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", report.html.partition("</style>")[2]))
    for expected in (
        "3 of 13 past hours were evaluated", "since 2026-01-05 10:00 UTC (± 1 h)", "Make &lt;script&gt;",
        "Burst balance 1.5 %", "Size 10 GiB", "ebs_volume_starving title: b", "resolved",
        "1 resource ", "c, for example", "because", "10 past hours of this day were not evaluated",
    ):  # fmt: skip
        assert expected in text, expected
    assert "<script" not in report.html
    assert f"1. Make {clean(EVIL)} larger." in report.text
    assert next(iter(report.images.values())).startswith(b"\x89PNG")


def test_the_file_is_self_contained_and_is_replaced_when_written_again(
    scenario: DeliveryScenario, tmp_path: Path
) -> None:
    config = Config(reports=Reports(folder=tmp_path / "out"))
    report = render_daily(scenario.engine, config, DAY)
    file = write_report(report, config)
    assert write_report(report, config) == file and list(file.parent.iterdir()) == [file]
    html = file.read_text()
    assert "cid:" not in html and "data:image/png;base64," in html
    assert not re.findall(r'(?:src|href)="(?!data:|http://127\.0\.0\.1:8080/)[^"]*"', html)


def test_a_day_without_evaluations_says_so_and_names_the_action(warehouse: sa.Engine) -> None:
    report = render_daily(warehouse, Config(), DAY)
    assert report.subject == "Streamwarden 2026-01-05: no hour was evaluated"
    assert "was evaluated" in report.html and "streamwarden run --hour 2026-01-05T00:00" in report.html
    assert ">–</span>open" in report.html and ">0</span>" not in report.html


def test_a_healthy_day_names_the_next_step(warehouse: sa.Engine) -> None:
    DeliveryScenario(warehouse).evaluate(0, {"a": "ok"})
    report = render_daily(warehouse, Config(), DAY)
    assert report.subject == "Streamwarden 2026-01-05: nothing open, 0 closed"
    assert "No open findings." in report.html and "streamwarden detectors list" in report.html


def test_the_report_of_a_day_that_has_not_begun_is_refused(warehouse: sa.Engine) -> None:
    with pytest.raises(StreamwardenError, match=r"^2026-01-06: is in the future; the newest report is that of 2026-01"):
        render_daily(warehouse, Config(), DAY + timedelta(days=1), now=hour(3))
    assert render_daily(warehouse, Config(), DAY, now=hour(-10)).subject.endswith("no hour was evaluated")


@pytest.mark.slow
def test_twelve_findings_fit_on_three_screens(warehouse: sa.Engine, scenario: DeliveryScenario) -> None:
    program = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
    if program is None:
        pytest.skip("no Chromium here")
    from playwright.sync_api import sync_playwright

    fields: dict[str, Any] = {
        "metrics": {f"measured_{n}_bytes": n * 2**30 for n in range(12)}, "actions": ("Do this at once. " * 6,) * 4,
        "key_metrics": tuple(f"measured_{n}_bytes" for n in range(12)), "message": "The limit is reached. " * 6,
    }  # fmt: skip
    scenario.evaluate(3, {f"vol-{n:017}": "firing" for n in range(11)} | {EVIL: "firing"}, **fields)
    with warehouse.begin() as connection:
        for number in range(30):
            row = {"hour": hour(3), "detector": f"detector_{number}", "status": "blocked", "message": "No data. " * 9}
            insert_row(connection, "detect.detector_run", row)
    reconcile(warehouse, Config(), DETECTORS)
    report = render_daily(warehouse, Config(), DAY)
    assert report.html.count('<tr class="finding') == 12
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--headless", "--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_content(report.html)
        assert page.evaluate("document.documentElement.scrollHeight") <= 3 * 900
        browser.close()


def test_the_file_has_dark_pictures_and_the_mail_does_not(
    scenario: DeliveryScenario, inbox: Inbox, config: Config, tmp_path: Path
) -> None:
    report = render_daily(scenario.engine, config, DAY)
    file = write_report(report, Config(reports=Reports(folder=tmp_path / "out"))).read_text()
    (dark,) = re.findall(r'media="\(prefers-color-scheme: dark\)" srcset="data:image/svg\+xml;base64,([^"]+)"', file)
    assert b"#ffffff" not in base64.b64decode(dark) and "cid:" not in file
    mail_report(report, config)
    html = inbox.mails[0].get_body(("html",))
    assert html is not None and "srcset" not in html.get_content()


def test_a_schema_drift_is_a_table_of_text(warehouse: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario, detector = DeliveryScenario(warehouse), "state_store_schema_drift"
    monkeypatch.setitem(DETECTORS, detector, load_detectors()[detector])
    scenario.evaluate(0, {"orders-changelog": "firing"}, detector)
    identity = {"cluster": "c", "topic": "orders-changelog"}
    with warehouse.begin() as connection:
        connection.execute(sa.text("update detect.evaluation set identity = :i"), {"i": json.dumps(identity)})
        for number in range(9):
            row = identity | {"hour": hour(0), "path": f"total{number}", "change": "type_changed", "old_type": "INT",
                              "new_type": "<b>TEXT</b>"}  # fmt: skip
            insert_row(connection, "metrics.state_store_change_hourly", row)
    reconcile(warehouse, Config(), DETECTORS)
    with warehouse.begin() as connection:
        connection.execute(sa.text("update tickets.ticket set identity = :i"), {"i": json.dumps(identity)})
    report = render_daily(warehouse, Config(), DAY)
    assert report.images == {} and "<b>" not in report.html
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", report.html))
    assert "Path Change Before After total0 type changed INT &lt;b&gt;TEXT&lt;/b&gt; total1" in text
    assert "total4" in text and "total5" not in text


def test_a_storm_is_one_entry(warehouse: sa.Engine) -> None:
    scenario = DeliveryScenario(warehouse)
    scenario.evaluate(0, {f"v{n}": "firing" for n in range(200)})
    reconcile(warehouse, Config(), DETECTORS)
    report = render_daily(warehouse, Config(), DAY)
    assert report.subject.endswith("200 open (200 critical), 200 new, 0 closed")
    assert report.html.count('<tr class="finding') == 21
    assert "180 of its findings are still open" in report.html


def test_info_findings_without_tickets_have_their_own_section(warehouse: sa.Engine) -> None:
    scenario = DeliveryScenario(warehouse)
    with warehouse.begin() as connection:
        insert_row(connection, "detect.detector", {"hour": None, "detector": "ebs_volume_starving", "title": "Volume"})
    scenario.evaluate(0, {EVIL: "firing"}, severity="info", message=f"{EVIL} could be smaller.")
    reconcile(warehouse, Config(), DETECTORS)
    report = render_daily(warehouse, Config(), DAY)
    assert report.subject.endswith("nothing open, 0 closed")
    assert "Info findings without tickets" in report.html and "<script" not in report.html
    assert f"* Volume: {clean(EVIL)}. {clean(EVIL)} could be smaller." in report.text
    scenario.evaluate(1, {EVIL: "firing"}, severity="warning")
    reconcile(warehouse, Config(), DETECTORS)
    scenario.evaluate(2, {EVIL: "firing"}, severity="info")
    assert "Info findings without tickets" not in render_daily(warehouse, Config(), DAY).html, "it has a ticket"


def test_an_unwritable_folder_is_a_one_line_error(scenario: DeliveryScenario, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    config = Config(reports=Reports(folder=tmp_path / "taken"))
    with pytest.raises(StreamwardenError, match=r"^reports\.folder .*taken: "):
        write_report(render_daily(scenario.engine, config, DAY), config)


@pytest.fixture
def config() -> Config:
    return Config(reports=Reports(mail_to=["vera@example.org", "ops@example.org"], mail_from="sw@example.org"))


def test_the_mail_has_text_html_and_pictures_by_content_id(
    scenario: DeliveryScenario, inbox: Inbox, config: Config
) -> None:
    report = render_daily(scenario.engine, config, DAY)
    assert mail_report(report, config) == 2
    got = inbox.mails[0]
    assert (got["Subject"], got["To"]) == (report.subject, "vera@example.org, ops@example.org")
    html = got.get_body(("html",))
    assert html is not None and got.get_body(("plain",)).get_content().startswith(report.subject)  # type: ignore[union-attr]
    cids = re.findall(r'src="cid:([^"]+)"', html.get_content())
    pictures = {part["Content-ID"].strip("<>"): part for part in got.walk() if part.get_content_type() == "image/png"}
    assert cids and set(cids) == set(pictures)
    assert pictures[cids[0]].get_content() == report.images[cids[0]]


def test_a_report_that_one_recipient_accepts_is_sent(
    scenario: DeliveryScenario, inbox: Inbox, config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    inbox.unknown = "ops@example.org"
    assert mail_report(render_daily(scenario.engine, config, DAY), config) == 1
    assert len(inbox.mails) == 1 and "reports.mail_to: the mail server refuses ops@example.org (550" in caplog.text


def test_no_recipients_no_mail(scenario: DeliveryScenario, inbox: Inbox) -> None:
    assert mail_report(render_daily(scenario.engine, Config(), DAY), Config()) == 0
    assert inbox.mails == []


def test_a_report_is_mailed_through_an_airflow_connection(
    scenario: DeliveryScenario, inbox: Inbox, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = urlsplit(os.environ[mail.SMTP_ENV]).port
    monkeypatch.setenv(
        "AIRFLOW_CONN_SMTP_TEST",
        f'{{"conn_type": "smtp", "host": "127.0.0.1", "port": {port}, "login": "me", "password": "pass word",'
        ' "extra": {"disable_ssl": true, "disable_tls": true}}',
    )
    from airflow.providers.smtp.hooks.smtp import SmtpHook

    with SmtpHook("smtp_test") as hook:
        assert mail_report(render_daily(scenario.engine, config, DAY), config, hook.get_conn()) == 2
    assert len(inbox.mails) == 1


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("smtp://me:secret@127.0.0.1:9", "the mail was not sent"),
        ("http://x", "must be like smtp://"),
    ],
)
def test_an_unsent_mail_is_a_one_line_error_without_the_password(
    warehouse: sa.Engine, config: Config, monkeypatch: pytest.MonkeyPatch, url: str, message: str
) -> None:
    monkeypatch.setenv(mail.SMTP_ENV, url)
    with pytest.raises(StreamwardenError, match=message) as error:
        mail_report(render_daily(warehouse, config, DAY), config)
    assert "secret" not in str(error.value) and "\n" not in str(error.value)


def test_wrong_credentials_and_a_refused_mail_are_one_line_errors(
    warehouse: sa.Engine, inbox: Inbox, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    report, url = render_daily(warehouse, config, DAY), os.environ[mail.SMTP_ENV]
    inbox.refuse = "552 too large"
    with pytest.raises(StreamwardenError, match="552 too large"):
        mail_report(report, config)
    monkeypatch.setenv(mail.SMTP_ENV, url.replace("pass%20word", "hunter2"))
    with pytest.raises(StreamwardenError, match="535") as error:
        mail_report(report, config)
    assert "hunter2" not in str(error.value)


OWNED = Tickets(
    trackers={
        "jira": Console(),
        "disks": Mail(host="mail.example.org", mail_from="sw@example.org", mail_to=["disks@example.org"]),
    },
    routes=[Route(owner="storage", to=["jira", "disks"]), Route(least_severity="critical", to=["jira"])],
)


@pytest.fixture
def owned(warehouse: sa.Engine) -> DeliveryScenario:
    """A firing volume of the storage team, with an unowned group as a downstream effect in its ticket."""
    scenario = DeliveryScenario(warehouse)
    with warehouse.begin() as connection:
        insert_row(connection, "detect.detector", {"hour": None, "detector": "ebs_volume_starving", "title": "Volume"})
    scenario.evaluate(0, {"v1": "firing", "v2": "firing"}, owner="storage")
    scenario.evaluate(0, {"g1": "firing", "g2": "unknown"}, "consumer_group_lagging", severity="warning")
    scenario.store_causes(0, {(fingerprint_of("g1", "consumer_group_lagging"), fingerprint_of("v1")): 0.9})
    reconcile(warehouse, Config(), DETECTORS)
    return scenario


def test_the_fleet_report_counts_findings_by_owner(owned: DeliveryScenario) -> None:
    report = render_daily(owned.engine, Config(), DAY)
    assert "* storage: 2 open (2 critical), 2 new, 0 closed" in report.text
    assert "* unassigned: 1 open (0 critical), 1 new, 0 closed" in report.text
    assert "By owner" in report.html and daily_owners(owned.engine, DAY) == ["storage"]


def test_the_report_of_an_owner_has_only_their_findings(owned: DeliveryScenario) -> None:
    report = render_daily(owned.engine, Config(), DAY, owner="storage")
    assert report.subject == "Streamwarden 2026-01-05 for storage: 2 open (2 critical), 2 new, 0 closed"
    assert "title: v1" in report.text and "title: v2" in report.text and "g1" not in report.text
    assert "fleet in figures" not in report.html and "By owner" not in report.html and "g2" not in report.html


def test_the_report_of_an_owner_counts_only_their_resources_detectors_and_sources(owned: DeliveryScenario) -> None:
    owned.evaluate(0, {"v1": "firing", "v2": "ok", "v3": "ok", "v4": "unknown"}, owner="storage")
    with owned.engine.begin() as connection:
        counts = "update detect.detector_run set ok = 40, unknown = 30"
        connection.execute(sa.text(counts))
        connection.execute(sa.text("update detect.evaluation set resource = 'other:demo/' || resource_name"))
        for source, name in (
            ("kafka_log_dirs", "demo broker 1 log dirs"), ("kafka_log_dirs", "west broker 1 log dirs"),
            ("jolokia", "broker of demo at b1:9999"), ("jolokia", "broker of west at b2:9999"),
            ("cloudwatch", "123/eu-west-1 volumes"),
        ):  # fmt: skip
            row = {"hour": hour(0), "source": source, "resource_name": name, "status": "missing", "message": name}
            insert_row(connection, "detect.coverage", row | {"app": "a"})
    owned.evaluate(1, {}, "app_memory_heavy", detector_run="blocked")
    owned.evaluate(1, {}, "ebs_volume_starving", detector_run="blocked")
    report = render_daily(owned.engine, Config(), DAY, owner="storage")
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", report.html))
    assert "2 healthy 1 not evaluated" in text
    assert "demo broker 1" in text and "broker of demo" in text and "app_memory_heavy" not in text
    assert "west broker" not in text and "of west" not in text and "123/eu-west-1" not in text
    assert "Volume 1 hour" in text
    of_fleet = render_daily(owned.engine, Config(), DAY).text
    assert "west broker 1" in of_fleet and "123/eu-west-1" in of_fleet and "app_memory_heavy" in of_fleet
    assert "0 healthy 0 not evaluated" in re.sub(
        r"\s+", " ", re.sub(r"<[^>]+>", " ", render_daily(owned.engine, Config(), DAY, owner="nobody").html)
    )


def test_an_effect_in_the_ticket_of_another_owner_is_in_its_own_report(owned: DeliveryScenario) -> None:
    report = render_daily(owned.engine, Config(), DAY, owner="")
    assert "title: g1" in report.text and "v2" not in report.text
    assert "owners: in streamwarden.yaml: - {key_pattern: '^group:c/g1$', owner: NAME}" in report.text
    assert "Possible cause" in report.html and "{key_pattern: &#39;^group:c/g1$" in report.html.replace("'", "&#39;")


def test_the_report_of_an_owner_is_mailed_where_routes_mail_its_tickets(
    owned: DeliveryScenario, tmp_path: Path
) -> None:
    config, sent = Config(tickets=OWNED, reports=Reports(folder=tmp_path)), []

    def opened(name: str, settings: Mail) -> MailTracker:
        return MailTracker(name, settings, post=sent.append)  # type: ignore[arg-type]

    report = render_daily(owned.engine, config, DAY, owner="storage")
    assert mail_owner(report, config, opened) == 1
    assert [(one["From"], one["To"], one["Subject"]) for one in sent] == [
        ("sw@example.org", "disks@example.org", report.subject)
    ]
    assert mail_owner(render_daily(owned.engine, config, DAY, owner="billing"), config, opened) == 0

    def partly_away(name: str, settings: Mail) -> MailTracker:
        def post(message: EmailMessage | None) -> None:
            if name == "away":
                raise smtplib.SMTPConnectError(421, "away")
            sent.append(message)

        return MailTracker(name, settings, post=post)

    away = {"away": OWNED.trackers["disks"], **OWNED.trackers}
    several = Tickets(trackers=away, routes=[Route(owner="storage", to=["away", "disks"])])
    assert mail_owner(report, Config(tickets=several), partly_away) == 1 and len(sent) == 2, (
        "one unreachable server of two is not a failure"
    )
    one = Tickets(trackers=away, routes=[Route(owner="storage", to=["away"])])
    with pytest.raises(StreamwardenError, match="421: away"):
        mail_owner(report, Config(tickets=one), partly_away)
    assert write_report(report, config).name == "daily-2026-01-05-storage.html"
    strange = render_daily(owned.engine, config, DAY, owner="../../team & co")
    assert write_report(strange, config) == tmp_path / "daily-2026-01-05-.._.._team_co.html"

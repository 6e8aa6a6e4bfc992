"""The score: tickets in a real tracker against the truth."""

from __future__ import annotations

import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa
from demo.faults import Injected
from demo.more_faults import MORE
from demo.process import free_port
from demo.score import Ticket, open_tickets, score
from demo.tracker import credentials
from demo.verdicts import compared, with_verdicts
from rich.console import Console
from streamwarden.base.errors import StreamwardenError
from streamwarden.detectors.load import load_detectors

START = datetime(2026, 11, 21, 5, 10, tzinfo=UTC)
MEMORY = Injected("memory", "app_memory_heavy", "orders", START.isoformat(), "heap", ("over_budget",))
DRIFTED = "orders-customer-latest-changelog"
SCHEMA = Injected("schema", "state_store_schema_drift", DRIFTED, START.isoformat(), "drift", ("breaks_restore",))


CHAIN = Injected(
    "chain",
    "ebs_volume_starving",
    "vol-3",
    START.isoformat(),
    "disk",
    ("bucket_empty",),
    ("Log flush latency: shop/3",),
)
REASONS = {line.detector: line.reasons[0] for line in (MEMORY, SCHEMA, CHAIN)}


def ticket(detector: str, resource_name: str, opened_at: datetime = START, text: str = "") -> Ticket:
    """A ticket of a finding with the right reason that is its own root cause."""
    reason, root = REASONS.get(detector), (detector, resource_name)
    return Ticket("http://127.0.0.1/issue1", "title", detector, resource_name, opened_at, text, "ab12", reason, root)


def test_an_incident_is_found_by_one_ticket_that_names_its_effects() -> None:
    whole = ticket(CHAIN.detector, "vol-3", text="Downstream effects (1)\n  - Log flush\n    latency: shop/3. 5 %")
    assert score([CHAIN], [whole], START).is_perfect


def test_an_effect_with_its_own_ticket_is_false_and_an_unnamed_effect_is_missed() -> None:
    alone = [ticket(CHAIN.detector, "vol-3"), ticket("log_flush_slow", "shop/3")]
    assert (
        str(score([CHAIN], alone, START))
        == "0 of 1 incident in exactly one ticket, 0 with a wrong reason or root cause, 1 false"
    )


def test_two_tickets_for_one_fault_do_not_count_as_found() -> None:
    assert score([MEMORY], [ticket("app_memory_heavy", "orders")] * 2, START).missed == (MEMORY,)


def test_all_faults_found_without_false_tickets_is_perfect() -> None:
    tickets = [ticket("app_memory_heavy", "demo/orders"), ticket(SCHEMA.detector, SCHEMA.resource)]
    result = score([MEMORY, SCHEMA], tickets, START)
    assert str(result) == "2 of 2 incidents in exactly one ticket each, 0 with a wrong reason or root cause, 0 false"
    assert result.is_perfect


def test_the_right_detector_with_another_reason_is_wrong() -> None:
    heap = replace(ticket("app_memory_heavy", "demo/orders"), reason="gc_overhead")
    result = score([MEMORY], [heap], START)
    assert result.wrong == ((MEMORY, heap),) and not result.is_perfect
    assert str(result) == "1 of 1 incident in exactly one ticket, 1 with a wrong reason or root cause, 0 false"


def test_a_found_fault_with_another_root_cause_is_wrong() -> None:
    heap = replace(ticket("app_memory_heavy", "demo/orders"), root=("ebs_volume_starving", "vol-3"))
    assert score([MEMORY], [heap], START).wrong == ((MEMORY, heap),)


def test_the_table_shows_what_was_expected_and_what_was_found() -> None:
    heap = replace(ticket("app_memory_heavy", "demo/orders"), reason="gc_overhead", root=("broker_down", "demo/1"))
    console = Console(width=200, record=True, file=StringIO())
    console.print(compared([MEMORY, SCHEMA], [heap]))
    rows = [line.split() for line in console.export_text().splitlines()[1:]]
    assert rows == [
        ["memory", "over_budget", "gc_overhead", "app_memory_heavy", "orders", "broker_down", "demo/1"],
        ["schema", "breaks_restore", "no", "ticket", SCHEMA.detector, DRIFTED, "no", "ticket"],
    ]


def test_injected_reasons_are_reasons_of_their_detectors() -> None:
    detectors = load_detectors(check=False)
    for name, fault in MORE.items():
        assert fault.reasons and set(fault.reasons) <= set(detectors[fault.detector].verdicts), name


def test_reason_and_root_cause_come_from_the_warehouse(warehouse: sa.Engine) -> None:
    with warehouse.begin() as connection:
        connection.exec_driver_sql("select public.ensure_day('2026-11-21')")
        connection.exec_driver_sql(
            "insert into tickets.ticket (fingerprint, detector, resource_name, identity, severity, title, state,"
            " opened_hour, last_firing_hour, role) values"
            " ('f1', 'log_flush_slow', 'shop/3', '{}', 'warning', 't', 'open', '2026-11-21 05:00+00',"
            " '2026-11-21 05:00+00', 'follows'),"
            " ('f2', 'ebs_volume_starving', 'vol-3', '{}', 'critical', 't', 'open', '2026-11-21 05:00+00',"
            " '2026-11-21 06:00+00', 'root')"
        )
        # The issue of the first finding has carried the incident since before its root was known.
        connection.exec_driver_sql(
            "update tickets.ticket set root_ticket_id = (select ticket_id from tickets.ticket where fingerprint = 'f2')"
            " where fingerprint = 'f1'"
        )
        connection.exec_driver_sql(
            "insert into detect.evaluation (hour, detector, fingerprint, resource_name, identity, status, message,"
            " metrics, evaluated_at, reason) values"
            " ('2026-11-21 05:00+00', 'log_flush_slow', 'f1', 'shop/3', '{}', 'firing', 'm', '{}',"
            " '2026-11-21 06:00+00', 'over_limit')"
        )
    flush = replace(ticket("log_flush_slow", "shop/3"), fingerprint="f1", reason=None, root=("", ""))
    unknown = replace(flush, fingerprint="f9")
    with warehouse.connect() as connection:
        found = with_verdicts(connection, [flush, unknown])
    assert found == [replace(flush, reason="over_limit", root=("ebs_volume_starving", "vol-3")), unknown]


def test_the_right_detector_on_the_wrong_resource_is_missed_and_false() -> None:
    result = score([MEMORY], [ticket("app_memory_heavy", "orders-archive")], START)
    assert str(result) == "0 of 1 incident in exactly one ticket, 0 with a wrong reason or root cause, 1 false"
    assert not result.is_perfect


def test_a_ticket_without_detector_is_false() -> None:
    assert (
        str(score([], [ticket("", "")], START))
        == "0 of 0 incidents in exactly one ticket each, 0 with a wrong reason or root cause, 1 false"
    )


def test_an_open_ticket_of_an_earlier_run_counts_as_found_but_not_as_false() -> None:
    earlier = START - timedelta(hours=1)
    tickets = [ticket("app_memory_heavy", "orders", earlier), ticket("consumer_rogue", "vol-1", earlier)]
    assert (
        str(score([MEMORY], tickets, START))
        == "1 of 1 incident in exactly one ticket, 0 with a wrong reason or root cause, 0 false"
    )


def test_only_open_tickets_are_read_from_the_tracker(tracker: tuple[str, Path]) -> None:
    url, folder = tracker
    user = ("streamwarden", credentials(folder)["streamwarden"])
    headers = {"X-Requested-With": "rest", "Origin": url, "Referer": f"{url}/"}
    with httpx.Client(base_url=f"{url}/rest/data", auth=user, headers=headers) as client:
        text = "Heavy.\n\nfingerprint: ab12\ndetector: app_memory_heavy\nresource_name: demo/orders\n"
        message = client.post("/msg", data={"content": text}).json()["data"]["id"]
        issue = client.post("/issue", data={"title": "<script> é", "messages": message}).json()["data"]["id"]
        found = [one for one in open_tickets(url, *user) if one.title == "<script> é"]
        assert [(one.detector, one.resource) for one in found] == [("app_memory_heavy", "demo/orders")]
        assert datetime.now(UTC) - found[0].opened_at < timedelta(minutes=1)
        etag = client.get(f"/issue/{issue}").headers["etag"]
        client.patch(f"/issue/{issue}", data={"status": "resolved"}, headers={"If-Match": etag}).raise_for_status()
        assert not [one for one in open_tickets(url, *user) if one.title == "<script> é"]


def test_the_passwords_of_the_tracker_are_only_readable_by_the_owner(tracker: tuple[str, Path]) -> None:
    url, folder = tracker
    assert stat.S_IMODE((folder / "credentials.json").stat().st_mode) == 0o600
    assert credentials(folder).keys() == {"admin", "streamwarden"}
    assert httpx.get(f"{url}/rest/data/issue").status_code == 403
    with pytest.raises(StreamwardenError, match=f"the tracker at {url} cannot be read"):
        open_tickets(url, "streamwarden", "wrong")


def test_an_unreachable_tracker_is_a_one_line_error() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(StreamwardenError, match=f"^the tracker at {url} cannot be read: "):
        open_tickets(url, "streamwarden", "any")


@pytest.mark.slow
def test_nobody_else_can_read_the_database_of_the_tracker(tracker: tuple[str, Path]) -> None:
    home = tracker[1] / "tracker"
    files = [home, *home.rglob("*")]
    assert any(file.name == "db" for file in files) and [file for file in files if file.stat().st_mode & 0o077] == []

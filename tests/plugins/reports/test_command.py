"""`streamwarden report`: the three reports, of all owners and of one, as HTML, as PDF, and as a mail."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
import yaml
from streamwarden.base.config import CONFIG_ENV, Config
from streamwarden.tickets import reconcile

from tests.plugins.cli.test_cli import in_this_process
from tests.plugins.tickets.scenario import DETECTORS, DeliveryScenario

from .conftest import Inbox

DAY = ("--day", "2026-01-05")
HOSTILE = '"><script>alert(1)</script>\u202e' + "x" * 200


@pytest.fixture
def folder(warehouse: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the reports; a volume of the storage team and one without an owner are firing."""
    scenario = DeliveryScenario(warehouse)
    scenario.evaluate(0, {"v1": "firing"}, owner="storage")
    scenario.evaluate(0, {"g1": "firing"}, "consumer_group_lagging")
    configure(tmp_path, monkeypatch)
    reconcile(scenario.engine, Config(), DETECTORS)
    return tmp_path / "reports"


def configure(folder: Path, monkeypatch: pytest.MonkeyPatch, **reports: object) -> None:
    file = folder / "streamwarden.yaml"
    file.write_text(yaml.safe_dump({"reports": {"folder": str(folder / "reports"), **reports}}))
    monkeypatch.setenv(CONFIG_ENV, str(file))


@pytest.mark.parametrize(
    ("options", "name"),
    [((), "daily-2026-01-05"), (("--week",), "weekly-2026-W02"), (("--month",), "monthly-2026-01"),
     (("--owner", "storage"), "daily-2026-01-05-storage"),
     (("--week", "--owner", "storage"), "weekly-2026-W02-storage"),
     (("--month", "--owner", "storage"), "monthly-2026-01-storage"),
     (("--week", "--owner", ""), "weekly-2026-W02-unassigned")],
)  # fmt: skip
def test_each_report_is_a_file(folder: Path, options: tuple[str, ...], name: str) -> None:
    done = in_this_process("report", *DAY, *options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.replace("\n", "") == f"wrote {folder / name}.html"
    text = (folder / f"{name}.html").read_text()
    assert ("for storage" in text) == ("storage" in options)


def test_the_weekly_report_of_an_owner_has_only_their_findings(folder: Path) -> None:
    in_this_process("report", *DAY, "--week", "--owner", "storage")
    text = (folder / "weekly-2026-W02-storage.html").read_text()
    assert "title: v1" in text and "g1" not in text and "By owner" not in text and "Capacity headroom" not in text
    in_this_process("report", *DAY, "--week", "--owner", "")
    text = (folder / "weekly-2026-W02-unassigned.html").read_text()
    assert "g1" in text and "title: v1" not in text and "for unassigned" in text


def test_a_hostile_owner_is_text_in_the_report_and_no_path(folder: Path) -> None:
    assert in_this_process("report", *DAY, "--week", "--owner", f"../{HOSTILE}").returncode == 0
    (file,) = folder.iterdir()
    assert file.name.startswith("weekly-2026-W02-.._script_alert_1_script_x") and len(file.name) < 150
    assert "<script" not in file.read_text() and "\u202e" not in file.read_text()


def test_a_pdf_is_written_next_to_the_file(folder: Path) -> None:
    done = in_this_process("report", *DAY, "--month", "--pdf")
    assert done.returncode == 0, done.stderr
    assert (folder / "monthly-2026-01.pdf").read_bytes().startswith(b"%PDF-")
    assert sorted(file.suffix for file in folder.iterdir()) == [".html", ".pdf"]


def test_a_test_mail_is_sent_at_once(folder: Path, inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(folder.parent, monkeypatch, mail_to=["vera@example.org"], mail_from="sw@example.org")
    done = in_this_process("report", *DAY, "--month", "--test-mail")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "mailed to 1 recipient"), done.stderr
    (mail,) = inbox.mails
    assert mail["To"] == "vera@example.org" and str(mail["Subject"]).startswith("Streamwarden 2026-01: ")
    assert mail.get_body(("plain",)) is not None and mail.get_body(("html",)) is not None


@pytest.mark.parametrize(
    ("options", "expected"),
    [(("--test-mail",), "--test-mail: no recipients; add recipients to reports.mail_to in streamwarden.yaml."),
     (("--week", "--owner", "storage", "--test-mail"), "--test-mail: no recipients; route the owner's tickets"),
     (("--week", "--month"), "--week and --month: are two reports; leave out one."),
     (("--month", "--day", "2200-01-01"), "2200-01-01: is in the future;")],
)  # fmt: skip
def test_what_cannot_be_done_is_one_line(folder: Path, options: tuple[str, ...], expected: str) -> None:
    done = in_this_process("report", *DAY, *options)
    assert done.returncode == 1 and expected in done.stderr.replace("\n", " ")

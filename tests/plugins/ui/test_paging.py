"""All findings are reachable page by page through links, which keep the filters."""

from __future__ import annotations

import html
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import sqlalchemy as sa
from streamwarden.base.config import CONFIG_ENV
from streamwarden.ui import pages
from streamwarden.ui.render import render

from tests.sql.rows import HOUR, insert_row

NAMES = [f"volume {n} & more" for n in range(7)]


@pytest.fixture
def findings(warehouse: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven firing findings since the same hour; every second one is critical."""
    config = tmp_path / "streamwarden.yaml"
    config.write_text("{}\n")
    monkeypatch.setenv(CONFIG_ENV, str(config))
    with warehouse.begin() as connection:
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": HOUR.date()})
        insert_row(
            connection, "detect.detector", {"hour": HOUR, "detector": "d", "title": "Slow", "severity": "warning"}
        )
        insert_row(connection, "detect.detector_run", {"hour": HOUR, "detector": "d", "status": "evaluated"})
        for n, name in enumerate(NAMES):
            insert_row(
                connection, "detect.evaluation",
                {"hour": HOUR, "detector": "d", "fingerprint": f"{n:064x}", "resource_name": name, "status": "firing",
                 "severity": "critical" if n % 2 else "warning", "key_metrics": "[]", "commands": "[]"},
            )  # fmt: skip


def shown(**asked: str) -> list[list[str]]:
    """Names on each page, in order; follows the links to the next page."""
    names, query = [], {"severity": None, "detector": None, "q": None, "after": None, **asked}
    while True:
        values = pages.findings(query["q"], query["after"], severity=query["severity"], detector=query["detector"])
        page = render("findings.html", {"root": "", "airflow": "", "assets": "", "version": "0.1.0"} | values)
        names.append([finding["resource_name"] for finding in values["findings"]])
        found = re.search(r'rel="next" href="([^"]+)"', page)
        if not found:
            return names
        parts = parse_qs(urlsplit(html.unescape(found[1])).query)
        query = {name: parts.get(name, [None])[0] for name in query}


@pytest.mark.usefixtures("findings")
def test_every_finding_is_on_one_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_FINDINGS", 3)
    found = shown()
    assert [len(page) for page in found] == [3, 3, 1]
    assert [name for page in found for name in page] == NAMES[1::2] + NAMES[::2]  # the most severe first


@pytest.mark.usefixtures("findings")
def test_links_to_the_next_page_keep_the_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_FINDINGS", 1)
    assert shown(severity="warning", q="e 2 & m", detector="d") == [[NAMES[2]]]
    assert shown(severity="critical", q="volume") == [[name] for name in NAMES[1::2]]


@pytest.mark.usefixtures("findings")
def test_after_a_finding_that_is_gone_the_first_page_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_FINDINGS", 3)
    values = pages.findings(None, "f" * 64)
    assert (values["is_first"], [finding["place"] for finding in values["findings"]]) == (True, [1, 2, 3])

"""The texts of tickets, for someone who reads them at 4 am: what is wrong, since when, what to do; then why.

Plain text: every value from outside goes through `clean`, so that no name can add a line, a terminal code or a
machine line; a tracker that shows more than plain text escapes it itself.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import jinja2
import sqlalchemy as sa

from streamwarden.base.config import Config
from streamwarden.detectors import Detector
from streamwarden.words.readable import clean, moment, readable_evidence, span

TITLE_LENGTH = 200
LINE = 100  # characters
_ITEM = r"\d+\. |[-*] "
STORM_LINES = 100  # findings that a summary names; the page has them all

_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=jinja2.select_autoescape(["html"]),  # ours are text: the tracker escapes it
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)


def wrapped(text: str, indent: int = 0) -> str:
    """Text in lines that fit a tracker's page: paragraphs, and items of lists with a hanging indent."""
    items: list[str] = []
    for line in text.strip("\n").splitlines():
        if items and items[-1].strip() and line.strip() and not re.match(_ITEM, line):
            items[-1] += f" {line.strip()}"  # goes on with the item above
        else:
            items.append(line)
    return "\n".join(_filled(item, " " * indent) for item in items)


def _filled(item: str, indent: str) -> str:
    hanging = re.match(_ITEM, item)
    inner = indent + " " * (len(hanging[0]) if hanging else 0)
    return textwrap.fill(
        item, LINE, initial_indent=indent, subsequent_indent=inner, break_long_words=False, break_on_hyphens=False,
        replace_whitespace=False, drop_whitespace=True,
    )  # fmt: skip


_TEMPLATES.filters |= {"moment": moment, "wrapped": wrapped}


@dataclass(frozen=True)
class Alarm:
    """A detector's word on a resource in an hour, as texts need it."""

    fingerprint: str
    detector: str
    hour: datetime
    resource: str
    identity: dict[str, Any]
    severity: str
    reason: str
    evidence: dict[str, Any]

    @classmethod
    def of(cls, row: sa.RowMapping) -> Alarm:
        """From a row of detect.evaluation; names are cleaned here, once."""
        return cls(
            fingerprint=row["fingerprint"],
            detector=row["detector"],
            hour=row["hour"],
            resource=clean(row["resource"]),
            identity=row["identity"],
            severity=row["severity"],
            reason=clean(row["reason"]),
            evidence=row["evidence"],
        )

    @property
    def advice(self) -> str:
        return clean(self.evidence.get("advice") or "")

    @property
    def touches(self) -> list[str]:
        return [str(touch) for touch in self.evidence.get("touches") or []]


def title(detector_title: str, resource: str) -> str:
    """Title in the tracker: what, and which."""
    text = f"{clean(detector_title)}: {clean(resource)}"
    return text if len(text) <= TITLE_LENGTH else text[: TITLE_LENGTH - 1] + "…"


def finding_url(config: Config, fingerprint: str) -> str:
    """The finding's page in the Airflow UI."""
    return f"{config.ui_url.rstrip('/')}/streamwarden/findings/{fingerprint}"


def body(connection: sa.Connection, config: Config, detector: Detector, alarm: Alarm, since: datetime) -> str:
    """The text of a new ticket, but for the lines that only delivery knows (`complete`)."""
    judgement = connection.execute(
        sa.text("select params, sql_checksum from detect.judgement where hour = :hour and detector = :detector"),
        {"hour": alarm.hour, "detector": detector.id},
    ).mappings().first()  # fmt: skip
    return _TEMPLATES.get_template("ticket.txt").render(
        alarm=alarm,
        detector=detector,
        since=since,
        lasting=span((alarm.hour - since + timedelta(hours=1)).total_seconds()),
        evidence=_aligned(alarm),
        params=_params(detector, judgement["params"] if judgement else {}),
        checksum=(judgement["sql_checksum"] if judgement else detector.checksum)[:12],
        gaps=_gaps(connection, detector, alarm.hour),
        url=finding_url(config, alarm.fingerprint),
    )


def comment(heading: str, alarm: Alarm) -> str:
    """What changed, and the figures now."""
    return _TEMPLATES.get_template("comment.txt").render(heading=heading, alarm=alarm, evidence=_aligned(alarm))


def closing(detector: Detector, resource: str, hour: datetime, reason: str, said: str | None) -> str:
    """Why a ticket is closed."""
    if reason == "deleted":
        return (
            f"{clean(resource)} is gone: its sources answered in full for the hour {moment(hour)} and don't know it any"
            " more. Closed."
        )
    because = f" {clean(said)}" if said else ""
    hours = f"{detector.clear_after_hours} clean hours with data" if detector.clear_after_hours > 1 else "with data"
    return f"Healthy again as of the hour {moment(hour)} ({hours}).{because} Closed."


def storm(config: Config, detectors: Mapping[str, Detector], alarms: Sequence[Alarm], hour: datetime) -> str:
    """The one text for all findings beyond the cap of a run."""
    counts = Counter(alarm.detector for alarm in alarms)
    return _TEMPLATES.get_template("storm.txt").render(
        alarms=alarms[:STORM_LINES],
        more=len(alarms) - STORM_LINES,
        total=len(alarms),
        counts=[(detectors[detector].title, number) for detector, number in counts.most_common()],
        hour=hour,
        cap=config.tickets.max_new_per_run,
        url=f"{config.ui_url.rstrip('/')}/streamwarden/",
    )


def complete(text: str, related: Sequence[str], machine: Mapping[str, str]) -> str:
    """Adds related tickets and the lines for machines, which are always the last."""
    parts = [harmless(text)]
    if related:
        parts.append("Related\n" + "\n".join(f"  {line}" for line in related))
    parts.append("\n".join(f"{key}: {clean(value)}" for key, value in machine.items()))
    return "\n\n".join(parts) + "\n"


def harmless(text: str) -> str:
    """The text; a name at the start of a line must not pass for one of the lines for machines."""
    return re.sub(r"^(?=(?:fingerprint|detector|resource):)", " ", text.strip(), flags=re.MULTILINE)


def _aligned(alarm: Alarm) -> list[str]:
    pairs = readable_evidence(alarm.evidence)
    width = max((len(label) for label, _ in pairs), default=0)
    return [
        textwrap.fill(
            text, LINE, initial_indent=f"  {label:<{width}}  ", subsequent_indent=" " * (width + 4),
            break_long_words=False, break_on_hyphens=False,
        )
        for label, text in pairs
    ]  # fmt: skip


def _params(detector: Detector, in_force: Mapping[str, Any]) -> list[str]:
    return [
        f"{name} = {in_force.get(name, parameter.default)} {parameter.unit}: {parameter.why}"
        for name, parameter in detector.params.items()
    ]


def _gaps(connection: sa.Connection, detector: Detector, hour: datetime) -> list[str]:
    """What the detector's sources didn't answer in that hour; the first few and a count."""
    rows = connection.execute(
        sa.text("""
            select source, resource, status, reason, count(*) over () as total from detect.coverage
            where hour = :hour and app = any(:apps) and status <> 'answered'
            group by source, resource, status, reason
            order by status, source, resource limit 5"""),
        {"hour": hour, "apps": list(detector.apps)},
    ).all()
    lines = [f"{row.source}, {clean(row.resource)}: {row.status}, {clean(row.reason or '')}" for row in rows]
    if rows and rows[0].total > len(rows):
        lines.append(f"and {rows[0].total - len(rows)} more")
    return lines

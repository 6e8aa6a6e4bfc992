"""Texts of tickets besides the finding itself: titles, notes, closings, alert storms. Sinks add the markup."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from streamwarden.base.config import Config
from streamwarden.causes.weighing import short_name
from streamwarden.detectors import Detector, Finding
from streamwarden.detectors.mechanisms import may_cause
from streamwarden.rendering.readable import clean, counted, moment, readable
from streamwarden.rendering.templates import folder_templates

TITLE_LENGTH = 200
UNCHANGED = "None: no restart, no change of instances, volumes, topic settings, or group members."
UNKNOWN = "Not evaluated: no data exists for the three hours before."
CANDIDATES = 3  # possible causes that a ticket names where no cause was found
STORM_LINES = 100  # findings that a summary names; the page has them all

_TEMPLATES = folder_templates(Path(__file__).parent / "templates")


def title(detector_title: str, resource_name: str, brokers: Sequence[str] = ()) -> str:
    """Title in the tracker: the detector's title and the resource; of an instance or volume also its brokers.

    Args:
        brokers: keys of the brokers that run on the resource.
    """
    names = [f"{short_name(key)} of {key.partition(':')[2].rpartition('/')[0]}" for key in brokers]
    text = clean(", ".join([f"{detector_title}: {resource_name}", *names]))
    return text if len(text) <= TITLE_LENGTH else text[: TITLE_LENGTH - 1] + "…"


def finding_url(config: Config, fingerprint: str) -> str:
    """The finding's page in the Airflow UI."""
    return f"{config.ui_url.rstrip('/')}/streamwarden/findings/{fingerprint}"


def runbook_url(config: Config, detector: str) -> str:
    """The page of a detector in the Airflow UI, with its runbook."""
    return f"{config.ui_url.rstrip('/')}/streamwarden/detectors/{detector}"


def closing(detector: Detector, resource_name: str, hour: datetime, reason: str, ok_message: str | None) -> str:
    """Note of a ticket that is closed.

    Args:
        hour: the hour that closed it.
        reason: `healthy` or `deleted`.
        ok_message: message of the finding in that hour.
    """
    if reason == "deleted":
        return (
            f"Closed: {clean(resource_name)} was deleted. All of its sources responded for the hour {moment(hour)};"
            " none of them lists it."
        )
    hours = counted(detector.clear_after_hours, "consecutive hour")
    text = f"Resolved: no longer firing in the hour {moment(hour)} ({hours} with data)."
    return f"{text} {clean(ok_message)}" if ok_message else text


def listed(lines: Sequence[str], most: int) -> list[str]:
    """The first `most` lines, then one with the number of further ones."""
    return [*lines[:most], *([f"and {len(lines) - most} more"] if len(lines) > most else [])]


def cause_evidence(weighed: Mapping[str, Any]) -> str:
    """Evidence for a cause and its strength, in parentheses."""
    return f"({clean(weighed['message'])}; evidence {weighed['strength'] * 100:.0f} %)"


def no_root_cause(
    detectors: Mapping[str, Detector], detector: str, reason: str | None, *, firing: Collection[str], is_tested: bool,
    missing: Sequence[Mapping[str, Any]],
) -> str | None:  # fmt: skip
    """States that no root cause was found, and what was checked.

    Args:
        detector, reason: of the finding.
        firing: ids of the detectors that fire anywhere; those that fire elsewhere are no candidates.
        is_tested: whether a related finding was tested as its cause and ruled out.
        missing: sources that did not respond (`sql/tickets/missing_sources.sql`).

    Returns:
        The text; None where no mechanism leads to this reason.
    """
    candidates = may_cause(detectors, detector, reason or "")
    if not candidates:
        return None
    titles = [other.title for other in candidates if other.id not in firing][:CANDIDATES]
    text = "No related finding explains this one." if is_tested else "No related finding."
    if titles:
        text += f" {'Also checked' if is_tested else 'Checked'}: {'; '.join(titles)}."
    if missing:
        names = ", ".join(f"{clean(row['source'])} ({_of_resources(row)})" for row in missing)
        text += f" Sources without a response in that hour: {names}."
    return text


def _of_resources(row: Mapping[str, Any]) -> str:
    """The first resource that a source has no data of, and how many more there are."""
    more = row["resources"] - 1
    return clean(row["resource_name"]) + (f" and {more} more" if more else "")


def ruled_out(weighed: Mapping[str, Any], *, of_cause: bool = False) -> str:
    """Why one finding is not the cause of another: the weakest factor.

    Args:
        weighed: the pair, as `detect.cause` has it.
        of_cause: whether the line is about the cause; else it is about the effect.
    """
    metrics = weighed["metrics"]
    if weighed["is_possible"]:
        return f"possible {'cause' if of_cause else 'downstream effect'} {cause_evidence(weighed)}."
    reasons = {
        "time_factor": (
            "this finding started before it, or long after it." if of_cause
            else "it started before this finding, or long after it."
        ),
        "share_factor": f"{clean(weighed['message'])}.",
        "peers_factor": (
            f"{metrics.get('healthy_there', 0)} other resources with the same dependency are healthy, and"
            f" {metrics.get('affected_elsewhere', 0)} without it are not."
        ),
        "amount_factor": f"only {clean(weighed['message'])}.",
    }  # fmt: skip
    known = {name: weighed[name] for name in reasons if weighed[name] is not None}
    return reasons[min(known, key=lambda name: known[name])]


def change(row: Mapping[str, Any]) -> str:
    """A recent change of a resource, e.g. `broker 3 was restarted at 2026-01-05 09:58 UTC`."""
    name, what = short_name(row["resource"]), row["what"]
    if what in ("restarted", "launched"):
        return f"{name} was {what} at {moment(datetime.fromisoformat(row['now']))}"
    (label, was), (_, now) = (readable(what, _value(row[when])) for when in ("was", "now"))
    return f"{name}: {label.lower()} {clean(was)} → {clean(now)} (hour {moment(row['hour'])})"


def _value(text: str) -> int | str:
    """A number, the entries of a list, or the text itself."""
    if text.isdigit():
        return int(text)
    return ", ".join(map(str, json.loads(text))) if text.startswith("[") else text


def resolution_order(order: Sequence[tuple[datetime, str]], most: int) -> str:
    """The order in which the findings of an incident were resolved: hours and titles."""
    lines = listed([f"{moment(hour)}: {clean(title)}" for hour, title in order], most)
    return "\n".join(["Resolved in this order:", *(f"- {line}" for line in lines)])


def storm(
    config: Config, detectors: Mapping[str, Detector], findings: Sequence[Finding], hour: datetime, incidents: int
) -> str:
    """Text of the ticket that holds all findings beyond the cap of a run."""
    counts = Counter(finding.detector for finding in findings)
    return _TEMPLATES.get_template("storm.txt").render(
        findings=findings[:STORM_LINES],
        more=len(findings) - STORM_LINES,
        total=len(findings),
        incidents=incidents,
        counts=[(detectors[detector].title, number) for detector, number in counts.most_common()],
        hour=hour,
        cap=config.tickets.max_new_per_run,
        url=f"{config.ui_url.rstrip('/')}/streamwarden/",
    )

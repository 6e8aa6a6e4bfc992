"""What tickets say beside the finding itself: titles, why one is closed, what a storm holds. Markup is the sinks'."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
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
UNCHANGED = "Nothing that is gathered: no restart, no other type or size, no settings of topics, no members."
UNKNOWN = "Not known: the hours before weren't gathered."
STORM_LINES = 100  # findings that a summary names; the page has them all

_TEMPLATES = folder_templates(Path(__file__).parent / "templates")


def title(detector_title: str, resource_name: str, brokers: Sequence[str] = ()) -> str:
    """Title in the tracker: what, and which; of a machine or its disk, the brokers that run on it."""
    names = [f"{short_name(key)} of {key.partition(':')[2].rpartition('/')[0]}" for key in brokers]
    text = clean(", ".join([f"{detector_title}: {resource_name}", *names]))
    return text if len(text) <= TITLE_LENGTH else text[: TITLE_LENGTH - 1] + "…"


def finding_url(config: Config, fingerprint: str) -> str:
    """The finding's page in the Airflow UI."""
    return f"{config.ui_url.rstrip('/')}/streamwarden/findings/{fingerprint}"


def closing(detector: Detector, resource_name: str, hour: datetime, message: str, said: str | None) -> str:
    """Why a ticket is closed."""
    if message == "deleted":
        return (
            f"{clean(resource_name)} is gone: its sources answered in full for the hour {moment(hour)} and don't know it any"
            " more. Closed."
        )
    reason = f" {clean(said)}" if said else ""
    hours = f"{counted(detector.clear_after_hours, 'clean hour')} with data"
    return f"Healthy again as of the hour {moment(hour)} ({hours}).{reason} Closed."


def listed(lines: Sequence[str], most: int) -> list[str]:
    """At most so many lines, and how many more there are."""
    return [*lines[:most], *([f"and {len(lines) - most} more"] if len(lines) > most else [])]


def reason(weighed: Mapping[str, Any]) -> str:
    """Why a finding is thought to follow from another."""
    return f"({clean(weighed['message'])}; {weighed['strength']:.0%})"


def unexplained(
    detectors: Mapping[str, Detector], detector: str, reason: str | None, *, is_tested: bool,
    silent: Sequence[Mapping[str, Any]],
) -> str | None:  # fmt: skip
    """That no cause is known of a finding which has causes that we know of; `is_tested`: some were held against it,
    `silent`: sources that could have told of one and didn't answer."""
    titles = [other.title for other in may_cause(detectors, detector, reason or "")]
    if not titles:
        return None
    found = "what of that is in alarm near it doesn't explain it" if is_tested else "none is known to be in alarm"
    said = f"It can follow from others ({'; '.join(titles)}); {found}."
    if silent:
        names = [
            f"{clean(row['source'])} of {clean(row['resource_name'])}"
            + (f" and {row['resources'] - 1} more" if row["resources"] > 1 else "")
            for row in silent
        ]
        said += f" One may be there and not be seen: in that hour there was no answer from {'; '.join(names)}."
    return said


def refusal(weighed: Mapping[str, Any], *, of_cause: bool = False) -> str:
    """Why an effect isn't thought to follow from a cause, by the factor that speaks most against it; said of either."""
    metrics = weighed["metrics"]
    if weighed["is_possible"]:
        may = "may be its cause" if of_cause else "may follow from it"
        return f"{may} ({clean(weighed['message'])}; {weighed['strength']:.0%})."
    reasons = {
        "time_factor": f"{'this' if of_cause else 'it'} began before, or long after.",
        "share_factor": f"{clean(weighed['message'])}.",
        "peers_factor": (
            f"{metrics.get('healthy_there', 0)} peers at the same place are healthy, and"
            f" {metrics.get('affected_elsewhere', 0)} peers elsewhere are affected."
        ),
        "amount_factor": f"only {clean(weighed['message'])}.",
    }
    known = {name: weighed[name] for name in reasons if weighed[name] is not None}
    return reasons[min(known, key=lambda name: known[name])]


def change(row: Mapping[str, Any]) -> str:
    """What changed on a thing, e.g. `broker 3 was restarted at 2026-01-05 09:58 UTC`."""
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


def healed(order: Sequence[tuple[datetime, str]], most: int) -> str:
    """In which order the findings of an incident were over."""
    lines = listed([f"{moment(hour)}: {clean(title)}" for hour, title in order], most)
    return "\n".join(["Over, one after the other:", *(f"- {line}" for line in lines)])


def storm(
    config: Config, detectors: Mapping[str, Detector], found: Sequence[Finding], hour: datetime, incidents: int
) -> str:
    """The one text for all findings beyond the cap of a run."""
    counts = Counter(finding.detector for finding in found)
    return _TEMPLATES.get_template("storm.txt").render(
        findings=found[:STORM_LINES],
        more=len(found) - STORM_LINES,
        total=len(found),
        incidents=incidents,
        counts=[(detectors[detector].title, number) for detector, number in counts.most_common()],
        hour=hour,
        cap=config.tickets.max_new_per_run,
        url=f"{config.ui_url.rstrip('/')}/streamwarden/",
    )

"""Checks a detector's header against its SQL and against the rules for texts, without a database.

Used by the loader, so that a file that does not fit is refused with its key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from streamwarden.base.errors import StreamwardenError
from streamwarden.detectors import mechanisms, select
from streamwarden.detectors.load import EXCEPTED, MAX_KEY_METRICS, NOT_METRICS, RESOURCE_VALUES, Detector, Verdict
from streamwarden.detectors.resources import KINDS
from streamwarden.rendering.templates import names_in

MAX_WORDS = 25
"""Limit of words in a sentence that people read; a value counts as one word."""
MAX_TITLE = 60
MAX_OPERATORS = 2
"""Limit of `and` and `or` in a condition: a longer one is a rule, and belongs to the SQL."""
HEADINGS = ("Meaning", "Impact", "Diagnosis", "Mitigation")


def problems(detector: Detector) -> Iterator[str]:
    """A line for each mistake in header and SQL, with its key; the most basic first."""
    if detector.resource_kind not in KINDS:
        yield f"resource_kind: {detector.resource_kind}: no kind of resource; there are: {', '.join(KINDS)}."
        return
    if unknown := set(detector.narrower_kinds) - set(KINDS):
        yield f"narrower_kinds: {min(unknown)}: no kind of resource; there are: {', '.join(KINDS)}."
        return
    columns = select.columns(detector.sql)
    yield from _parameters(detector)
    yield from _verdicts(detector, columns)
    yield from mechanisms.problems(detector)
    yield from _columns(detector, columns)
    yield from _sql_texts(detector)
    yield from text_problems(detector)


def text_problems(detector: Detector) -> Iterator[str]:
    """A line for each text that violates the style rules for messages, with its key."""
    if len(detector.title) > MAX_TITLE:
        yield f"title: {len(detector.title)} characters; at most {MAX_TITLE}."
    missing = [name for name in HEADINGS if not re.search(rf"^\s*## {name}$", detector.runbook, re.MULTILINE)]
    if missing:
        yield f"runbook: has no heading `## {missing[0]}`."
    for reason, verdict in detector.verdicts.items():
        key = f"verdicts.{reason}"
        if verdict.status == "firing" and not (verdict.impact and verdict.actions):
            yield f"{key}: a firing verdict has an impact and actions."
        if verdict.status == "unknown" and not verdict.message.startswith(("Not evaluated: ", "Not applicable: ")):
            yield f"{key}.message: an unknown verdict begins with `Not evaluated: ` or `Not applicable: `."
        if verdict.message.startswith("It "):
            yield f"{key}.message: name the resource; do not begin with `It`."
        for template in verdict.texts:
            for sentence in sentences(template):
                if (count := len(sentence.split())) > MAX_WORDS:
                    yield f"{key}: {count} words, at most {MAX_WORDS}: {sentence[:60]!r}."
        for template in verdict.templates:
            if (count := len(re.findall(r"\{%-?\s*(?:if|elif|for)\b| if (?=[^}%]*\}\})", template))) > 1:
                yield f"{key}: {count} conditions in one template, at most 1: {' '.join(template.split())[:60]!r}."
            for condition in re.findall(r"\{%-?\s*(?:if|elif)\b(.*?)%\}", template, re.DOTALL):
                if (count := len(re.findall(r"\b(?:and|or)\b", condition))) > MAX_OPERATORS:
                    yield (
                        f"{key}: {count} times `and` or `or` in a condition, at most {MAX_OPERATORS}: select a column"
                        f" for it: {' '.join(condition.split())[:60]!r}."
                    )


def sentences(template: str) -> list[str]:
    """The sentences of a template at their longest: each value as one word, the longer branch of a condition."""

    def longer(found: re.Match[str]) -> str:
        branches = re.split(r"\{%-?\s*(?:else|elif[^%]*)\s*-?%\}", found[1])
        return max(branches, key=lambda branch: len(branch.split()))

    plain = re.sub(r"\{\{.*?\}\}", "value", " ".join(template.split()))
    plain = re.sub(r"\{%-?\s*if[^%]*%\}(.*?)\{%-?\s*endif\s*-?%\}", longer, plain)
    plain = re.sub(r"\{%.*?%\}", "", plain)
    return [sentence for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z])", plain) if sentence.strip()]


def _parameters(detector: Detector) -> Iterator[str]:
    used = select.parameters(detector.sql)
    if difference := used - {"hour"} - set(detector.params):
        yield f":{min(difference)}: used in the SQL but not in the header's params."
    if difference := set(detector.params) - used:
        yield f"params.{min(difference)}: never used in the SQL."


def _verdicts(detector: Detector, columns: list[str]) -> Iterator[str]:
    selected, defined = select.reasons(detector.sql), set(detector.verdicts)
    if difference := selected - defined:
        yield f"verdicts.{min(difference)}: the SQL selects this reason, but the header does not define it."
    if difference := defined - selected:
        yield f"verdicts.{min(difference)}: the SQL never selects this reason."
    if EXCEPTED in defined:
        yield f"verdicts.{EXCEPTED}: is the reason of what the config excludes."
    known = {*columns, *detector.params, *RESOURCE_VALUES} - {*NOT_METRICS}
    for reason, verdict in detector.verdicts.items():
        yield from _verdict(f"verdicts.{reason}", verdict, known)


def _verdict(key: str, verdict: Verdict, known: set[str]) -> Iterator[str]:
    if (verdict.status == "firing") != (verdict.severity is not None):
        yield f"{key}.severity: a firing verdict has one, and no other has."
    if verdict.is_not_applicable and verdict.status != "unknown":
        yield f"{key}.is_not_applicable: only for status unknown."
    for template in verdict.templates:
        try:
            unknown = names_in(template) - known
        except StreamwardenError as error:
            yield f"{key}: {error}"
            continue
        if unknown:
            yield f"{key}: {min(unknown)}: the SQL selects no such metric."


def _columns(detector: Detector, columns: list[str]) -> Iterator[str]:
    for column in ("reason", *detector.key_columns):
        if column not in columns:
            yield f"the select has no column {column}."
    if "*" in columns:
        yield "the last select must name its columns."
    if repeated := {column for column in columns if columns.count(column) > 1}:
        yield f"the select has two columns {min(repeated)}."
    if taken := set(columns) & (set(detector.params) | set(RESOURCE_VALUES)) - set(detector.identity):
        yield f"the column {min(taken)} has the name of a parameter, or of what every template has."
    if unknown := set(detector.key_metrics) - set(columns):
        yield f"key_metrics: {min(unknown)}: the SQL selects no such metric."
    if len(detector.key_metrics) > MAX_KEY_METRICS:
        yield f"key_metrics: at most {MAX_KEY_METRICS}."
    if len(since := [column for column in columns if re.search(r"(^|_)since$", column)]) > 1:
        yield f"a finding has one `since`, not {' and '.join(since)}."


_FORMATTING = re.compile(
    r"\b(?:format|round|to_char)\s*\(|::\s*numeric|as numeric|\b(?:1048576|1073741824)\b", re.IGNORECASE
)


def _sql_texts(detector: Detector) -> Iterator[str]:
    """Texts and units belong to the header and to the names of metrics."""
    body = detector.sql.partition("*/")[2]
    for string in select.strings(body):
        if re.search(r"[A-Z]\w+ \w+|\w+ \w+ \w+ \w+", string.text):
            yield f"the SQL has a sentence ({string.text[:40]!r}): move it to `verdicts`."
    code = re.sub(r"--[^\n]*|'(?:[^']|'')*'", "", body)
    if found := _FORMATTING.search(code):
        yield f"the SQL rounds, formats, or divides units ({found[0]!r}): metrics are formatted by their names."

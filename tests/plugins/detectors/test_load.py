"""The detector loader: valid headers load; every error is one line with file and key."""

from pathlib import Path

import pytest
from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.detectors import load_detectors
from streamwarden.detectors.check import sentences

GOOD = """/*
title: Something is wrong
resource_kind: volume
owner_role: platform
maturity: experimental
reads: [metrics.volume_hourly]
params:
  limit_percent: {default: 20, unit: percent, why: "because"}
key_metrics: [iops_max, baseline_iops]
verdicts:
  wrong:
    status: firing
    severity: warning
    message: "{{ name }} does {{ iops_max }} of {{ baseline_iops }}, more than {{ limit_percent }}."
    impact: "Requests wait."
    actions: ["Enlarge {{ name }}."]
    commands: ["enlarge {{ volume_id }}"]
  fine: {status: ok, message: "Fine."}
  dark: {status: unknown, message: "Not evaluated: IOPS were not reported."}
clear_after_hours: 2
runbook: |
  ## Meaning
  A test.
  ## Impact
  None.
  ## Diagnosis
  1. Read the test.
  ## Mitigation
  1. Fix the test.
limitations: none
*/
select
  case
    when iops_max is null then 'dark' when iops_max > :limit_percent::integer then 'wrong' else 'fine'
  end as reason,
  account, region, volume_id, iops_max, baseline_iops
from metrics.volume_hourly where hour = :hour
"""


TITLE, MESSAGE = (
    "title: Something is wrong",
    "{{ name }} does {{ iops_max }} of {{ baseline_iops }}, more than {{ limit_percent }}.",
)


def sentence(words: int) -> str:
    return " ".join(["w"] * words) + "."


def write(folder: Path, text: str, name: str = "storage/resource_wrong.sql") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_header_loads(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    detector = load_detectors(tmp_path)["resource_wrong"]
    assert (detector.subject, detector.severity, detector.open_after_hours) == ("storage", "warning", 1)
    assert detector.params["limit_percent"].unit == "percent"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("clear_after_hours: 2", "clear_after_hours: 2\ncolour: red", "colour: unknown key"),
        ("severity: warning", "severity: awful", "verdicts.wrong.severity: "),
        ("clear_after_hours: 2", "clear_after_hours: soon", "clear_after_hours: "),
        ("resource_kind: volume", "resource_kind: [volume", "is not YAML"),
        ("/*", "--", "must begin with a comment"),
        (":limit_percent::", ":limit_percents::", ":limit_percents: used in the SQL but not in the header"),
        ("iops_max > :limit_percent::integer", "true", "params.limit_percent: never used"),
        ("title: Something is wrong", "id: mine\ntitle: x", "id: comes from the file's path"),
        ("resource_kind: volume", "resource_kind: gadget", "resource_kind: gadget: no kind of resource"),
        (
            "resource_kind: volume",
            "resource_kind: volume\nnarrower_kinds: [gadget]",
            "narrower_kinds: gadget: no kind of resource",
        ),
        (
            "resource_kind: volume",
            "resource_kind: volume\nnarrower_kinds: [instance]",
            "the select has no column instance_id",
        ),
        (
            "  fine: {status: ok",
            "  good: {status: ok",
            "verdicts.fine: the SQL selects this reason, but the header does not define it",
        ),
        (
            "  dark: {",
            "  more: {status: ok, message: x}\n  dark: {",
            "verdicts.more: the SQL never selects this reason",
        ),
        ("{{ iops_max }}", "{{ iops_most }}", "verdicts.wrong: iops_most: the SQL selects no such metric"),
        ("{{ iops_max }}", "{{ iops_max }", "verdicts.wrong: "),
        ("severity: warning\n", "\n", "verdicts.wrong.severity: a firing verdict has one"),
        ("clear_after", "causes: {magic: [wrong]}\nclear_after", "causes.magic: no such mechanism"),
        (
            "clear_after",
            "causes: {disk_slows_broker: [fine]}\nclear_after",
            "disk_slows_broker: fine: is not a firing reason",
        ),
        ("clear_after", "causes: {lag_nears_retention: [wrong]}\nclear_after", "and this detector evaluates: volume"),
        ("clear_after", "caused_by: {disk_slows_broker: [wrong]}\nclear_after", "hits a broker, and this"),
        ("account, region, volume_id,", "account, volume_id,", "the select has no column region"),
        ("iops_max, baseline_iops\nfrom", "iops_max, baseline_iops, *\nfrom", "the last select must name its columns"),
        (
            "key_metrics: [iops_max,",
            "key_metrics: [iops_least,",
            "key_metrics: iops_least: the SQL selects no such metric",
        ),
        ("volume_id, iops_max,", "volume_id, 'It is too much of it' as x, iops_max,", "the SQL has a sentence"),
        ("volume_id, iops_max,", "volume_id, round(iops_mean) as x, iops_max,", "rounds, formats, or divides units"),
        ("volume_id, iops_max,", "volume_id, iops_mean as limit_percent, iops_max,", "has the name of a parameter"),
        ("volume_id, iops_max,", "volume_id, now() as since, now() as seen_since, iops_max,", "one `since`"),
        (TITLE, f"title: {61 * 'x'}", "title: 61 characters; at most 60."),
        (MESSAGE, sentence(26), "verdicts.wrong: 26 words, at most 25: 'w w w"),
        (
            MESSAGE,
            "It {{ name }} does {{ iops_max }}.",
            "verdicts.wrong.message: name the resource; do not begin with `It`.",
        ),
        ("Requests wait.", sentence(26), "verdicts.wrong: 26 words, at most 25: 'w w w"),
        (
            MESSAGE,
            "{% if iops_max %}A{% endif %}{% if baseline_iops %}B{% endif %}",
            "verdicts.wrong: 2 conditions in one template, at most 1: '{% if iops_max %}A",
        ),
        (
            MESSAGE,
            "{{ name }} is at its limit{% if iops_max and name and not iops_max or name %} again{% endif %}.",
            "verdicts.wrong: 3 times `and` or `or` in a condition, at most 2: select a column for it: 'iops_max and",
        ),
        ('    impact: "Requests wait."\n', "", "verdicts.wrong: a firing verdict has an impact and actions."),
        ('    actions: ["Enlarge {{ name }}."]\n', "", "verdicts.wrong: a firing verdict has an impact and actions."),
        ("Not evaluated: IOPS", "IOPS", "verdicts.dark.message: an unknown verdict begins with `Not evaluated: `"),
        ("## Diagnosis", "Diagnosis", "runbook: has no heading `## Diagnosis`."),
    ],
)
def test_an_error_is_one_line_with_file_and_key(tmp_path: Path, old: str, new: str, expected: str) -> None:
    file = write(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(StreamwardenError) as error:
        load_detectors(tmp_path)
    assert str(error.value).startswith(str(file))
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def test_the_longest_title_and_message_load(tmp_path: Path) -> None:
    write(tmp_path, GOOD.replace(TITLE, f"title: {60 * 'x'}").replace(MESSAGE, sentence(24) + "{{ iops_max }} w."))
    assert load_detectors(tmp_path)["resource_wrong"].title == 60 * "x"


@pytest.mark.parametrize(
    ("template", "longest"),
    [
        ("{% if a %}one two{% else %}three four five{% endif %} six.", 4),
        ("{% if a %}one two three{% elif b %}four{% endif %} five.", 4),
        ("{{ a | counted('volume') }} waits. Its {{ b }} is low.", 4),
        ("{% for one in many %}{{ one.x }} is low. {% endfor %}", 3),
    ],
)
def test_a_sentence_counts_its_longest_branch_and_a_value_as_one_word(template: str, longest: int) -> None:
    assert max(len(one.split()) for one in sentences(template)) == longest


def test_messages_are_not_checked_with_check_false(tmp_path: Path) -> None:
    write(tmp_path, GOOD.replace("{{ iops_max }}", "{{ iops_most }}"))
    assert load_detectors(tmp_path, check=False)["resource_wrong"].title == "Something is wrong"


def test_ids_are_unique_across_subjects(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    write(tmp_path, GOOD, "memory/resource_wrong.sql")
    with pytest.raises(StreamwardenError, match=r"the id is taken by .*memory/resource_wrong\.sql"):
        load_detectors(tmp_path)


def test_config_overrides(tmp_path: Path) -> None:
    write(tmp_path, GOOD)

    def config(**params: object) -> Config:
        return Config.model_validate({"detectors": {"resource_wrong": {"params": params}}})

    detector = load_detectors(tmp_path, config(limit_percent=30))["resource_wrong"]
    assert detector.params_in_force(config(limit_percent=30)) == {"limit_percent": 30}
    with pytest.raises(StreamwardenError, match="unknown parameter"):
        load_detectors(tmp_path, config(limit=30))
    with pytest.raises(StreamwardenError, match="must be a number like 20"):
        load_detectors(tmp_path, config(limit_percent="many"))
    with pytest.raises(StreamwardenError, match=r"detectors\.nothing: no such detector"):
        load_detectors(tmp_path, Config.model_validate({"detectors": {"nothing": {}}}))
    assert load_detectors(tmp_path, Config.model_validate({"detectors": {"resource_wrong": {"enabled": False}}})) == {}


def test_exceptions_select_by_the_key_columns_or_the_owner(tmp_path: Path) -> None:
    write(tmp_path, GOOD)

    def config(**exception: object) -> Config:
        return Config.model_validate({"detectors": {"resource_wrong": {"exceptions": [{"why": "known", **exception}]}}})

    load_detectors(tmp_path, config(where={"volume_id": "^vol-0"}, params={"limit_percent": 30}))
    load_detectors(tmp_path, config(where={"owner": "payments"}, off=True))
    with pytest.raises(
        StreamwardenError, match=r"exceptions\.0\.where\.group_id: resource_wrong identifies resources by: account"
    ):
        load_detectors(tmp_path, config(where={"group_id": "x"}, off=True))
    with pytest.raises(StreamwardenError, match=r"exceptions\.0\.params\.limit: unknown parameter"):
        load_detectors(tmp_path, config(where={"volume_id": "x"}, params={"limit": 1}))
    for wrong in (
        {"where": {}, "off": True},
        {"where": {"volume_id": "^("}, "off": True},
        {"where": {"volume_id": "x"}},
    ):
        with pytest.raises(ValueError):
            config(**wrong)

"""The detector loader: good headers load, every slip is one line that names file and key."""

from pathlib import Path

import pytest
from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.detectors import load_detectors

GOOD = """/*
title: Something is wrong
severity: warning
owner: platform
maturity: experimental
reads: [metrics.volume_hourly]
identity: [volume_id]
params:
  limit_percent: {default: 20, unit: percent, why: "because"}
clear_after_hours: 2
runbook: |
  1. Mend it.
blind_spots: none
*/
select volume_id as resource, 'ok' as status, 'fine' as reason, volume_id
from metrics.volume_hourly where hour = cast(:hour as timestamptz) and iops_max > :limit_percent
"""


def write(folder: Path, text: str, name: str = "storage/thing_wrong.sql") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_header_loads(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    detector = load_detectors(tmp_path)["thing_wrong"]
    assert (detector.subject, detector.severity, detector.open_after_hours) == ("storage", "warning", 1)
    assert detector.params["limit_percent"].unit == "percent"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("clear_after_hours: 2", "clear_after_hours: 2\ncolour: red", "colour: unknown key"),
        ("severity: warning", "severity: awful", "severity: "),
        ("clear_after_hours: 2", "clear_after_hours: soon", "clear_after_hours: "),
        ("identity: [volume_id]", "identity: [volume_id", "isn't YAML"),
        ("/*", "--", "must begin with a comment"),
        (":limit_percent", ":limit_percents", ":limit_percents: used in the SQL but not in the header"),
        ("iops_max > :limit_percent", "true", "params.limit_percent: never used"),
        ("title: Something is wrong", "id: mine\ntitle: x", "id: comes from the file's path"),
        ("clear_after_hours: 2", "clear_after_hours: 2\nfollows_from: [nothing]", "follows_from: nothing: no such"),
        ("clear_after_hours: 2", "clear_after_hours: 2\nfollows_from: [thing_wrong]", "goes in a circle: thing_wrong"),
    ],
)
def test_a_slip_is_one_line_with_file_and_key(tmp_path: Path, old: str, new: str, told: str) -> None:
    file = write(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(StreamwardenError) as error:
        load_detectors(tmp_path)
    assert str(error.value).startswith(str(file))
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_an_id_is_unique_over_all_subjects(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    write(tmp_path, GOOD, "memory/thing_wrong.sql")
    with pytest.raises(StreamwardenError, match=r"the id is taken by .*memory/thing_wrong\.sql"):
        load_detectors(tmp_path)


def test_config_overrides(tmp_path: Path) -> None:
    write(tmp_path, GOOD)

    def config(**params: object) -> Config:
        return Config.model_validate({"detectors": {"thing_wrong": {"params": params}}})

    detector = load_detectors(tmp_path, config(limit_percent=30))["thing_wrong"]
    assert detector.params_in_force(config(limit_percent=30)) == {"limit_percent": 30}
    with pytest.raises(StreamwardenError, match="unknown parameter"):
        load_detectors(tmp_path, config(limit=30))
    with pytest.raises(StreamwardenError, match="must be a number like 20"):
        load_detectors(tmp_path, config(limit_percent="many"))
    with pytest.raises(StreamwardenError, match=r"detectors\.nothing: no such detector"):
        load_detectors(tmp_path, Config.model_validate({"detectors": {"nothing": {}}}))
    assert load_detectors(tmp_path, Config.model_validate({"detectors": {"thing_wrong": {"enabled": False}}})) == {}

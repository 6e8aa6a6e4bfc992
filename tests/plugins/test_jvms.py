"""Target files as Prometheus has them: labels become keys, and what is wrong is a gap for its targets only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from streamwarden.config import Config
from streamwarden.jvms import Jvms, jvms_of

BROKER = {"role": "broker", "cluster": "orders"}


def found_in(folder: Path, *groups: Any, defaults: dict[str, Any] | None = None) -> Jvms:
    (folder / "kafka-1.json").write_text(json.dumps(groups))
    return jvms_of(config_for(str(folder / "kafka-*.json"), defaults or {}))


def config_for(path: str, defaults: dict[str, Any]) -> Config:
    return Config.model_validate(
        {
            "kafka": [{"name": "orders", "bootstrap_servers": "b"}],
            "jmx": [{**BROKER, "url": "http://b1:8778/jolokia"}],
            "jmx_files": [{"path": path, "defaults": defaults}],
        }
    )


def test_targets_and_labels_become_endpoints(tmp_path: Path) -> None:
    jvms = found_in(
        tmp_path,
        {"targets": ["b2:7071", "b3:7071"], "labels": {**BROKER, "env": "prod"}},
        {
            "targets": ["a1:8080"],
            "labels": {"role": "app", "cluster": "orders", "app": "billing", "instance_id": "i-1"}
            | {"__scheme__": "https", "__metrics_path__": "/actuator/prometheus"},
        },
        {"targets": ["b4:8778"], "labels": {**BROKER, "protocol": "jolokia", "broker_id": "4"}},
    )
    assert not jvms.gaps
    assert [(e.protocol, e.url) for e in jvms.endpoints] == [
        ("jolokia", "http://b1:8778/jolokia"),
        ("prometheus", "http://b2:7071/metrics"),
        ("prometheus", "http://b3:7071/metrics"),
        ("prometheus", "https://a1:8080/actuator/prometheus"),
        ("jolokia", "http://b4:8778/jolokia"),
    ]
    assert jvms.endpoints[3].app == "billing" and jvms.endpoints[3].instance_id == "i-1"
    assert jvms.endpoints[4].broker_id == 4


def test_defaults_hold_unless_a_label_says_otherwise_and_credentials_are_theirs_alone(tmp_path: Path) -> None:
    defaults = {**BROKER, "user": "reader", "password": "sesame", "timeout_seconds": 3}
    labels = {"role": "app", "app": "billing", "user": "mallory", "timeout_seconds": "99"}
    jvms = found_in(tmp_path, {"targets": ["b2:7071"]}, {"targets": ["a1:1"], "labels": labels}, defaults=defaults)
    _, broker, app = jvms.endpoints
    assert (broker.role, broker.cluster, broker.user, broker.timeout_seconds) == ("broker", "orders", "reader", 3)
    assert (app.role, app.app, app.user, app.timeout_seconds) == ("app", "billing", "reader", 3)


def test_yaml_is_read_too(tmp_path: Path) -> None:
    (tmp_path / "t.yml").write_text("- targets: [b2:7071]\n  labels: {role: broker, cluster: orders}\n")
    jvms = jvms_of(config_for(str(tmp_path / "t.yml"), {}))
    assert [e.url for e in jvms.endpoints] == ["http://b1:8778/jolokia", "http://b2:7071/metrics"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "refused: it is neither JSON nor YAML"),
        ("", 'refused: it isn\'t a list of {"targets"'),
        ("[7]", 'refused: it isn\'t a list of {"targets"'),
        ("\x00", "refused: it is neither JSON nor YAML"),
        ('[{"targets": "b2:7071"}]', "refused: a group's `targets` isn't a list"),
    ],
)
def test_a_broken_file_is_a_gap_and_the_others_stay(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "kafka-2.json").write_text(text)
    jvms = found_in(tmp_path, {"targets": ["b2:7071"], "labels": BROKER})
    assert [e.url for e in jvms.endpoints] == ["http://b1:8778/jolokia", "http://b2:7071/metrics"]
    (gap,) = jvms.gaps
    assert gap.resource == f"targets of {tmp_path}/kafka-2.json" and gap.reason.startswith(reason)


def test_no_file_is_a_gap(tmp_path: Path) -> None:
    (gap,) = jvms_of(config_for(f"{tmp_path}/none-*.json", {"role": "app"})).gaps
    assert (gap.reason, gap.role) == ("missing: there is no such file", "app")


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ({"cluster": "orders"}, "role Field required"),
        ({"role": "app", "cluster": "orders"}, "needs `app`"),
        ({"role": "broker", "cluster": "other"}, "its cluster 'other' isn't under `kafka`"),
        ({**BROKER, "broker_id": "one"}, "broker_id"),
        ({**BROKER, "protocol": "snmp"}, "protocol"),
    ],
)
def test_a_target_that_makes_no_jvm_is_a_gap(tmp_path: Path, labels: dict[str, str], reason: str) -> None:
    good = {"targets": ["b3:7071"], "labels": BROKER}
    jvms = found_in(tmp_path, {"targets": ["b2:7071"], "labels": labels}, good)
    assert [e.url for e in jvms.endpoints] == ["http://b1:8778/jolokia", "http://b3:7071/metrics"]
    (gap,) = jvms.gaps
    assert gap.resource == f"target b2:7071 of {tmp_path}/kafka-1.json" and reason in gap.reason


def test_defaults_are_checked_with_the_config() -> None:
    with pytest.raises(ValidationError, match="rôle"):
        config_for("x", {"rôle": "app"})
    with pytest.raises(ValidationError, match="url"):
        config_for("x", {"url": "http://b"})

"""The config file: good files load, every mistake is one line with file, key and reason, secrets stay out of it."""

from pathlib import Path

import pytest
from streamwarden.base.config import load_config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import PROJECT_ROOT


def write(folder: Path, text: str) -> Path:
    file = folder / "streamwarden.yaml"
    file.write_text(text)
    return file


def test_the_example_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "k")
    monkeypatch.setenv("REGISTRY_PASSWORD", "r")
    monkeypatch.setenv("TRACKER_PASSWORD", "t")
    config = load_config(PROJECT_ROOT / "streamwarden.example.yaml")
    assert config.kafka[0].client["sasl.password"] == "k"
    assert "'k'" not in repr(config.tickets)


def test_an_empty_file_is_a_config(tmp_path: Path) -> None:
    assert load_config(write(tmp_path, "")).tickets.sink == "console"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tikets: {}", "tikets: unknown key"),
        ("gathering: {settle_minutes: soon}", "gathering.settle_minutes: Input should be a valid integer"),
        ("gathering: {settle_minutes: soon}", "(value: 'soon')"),
        ("kafka: [{name: a, bootstrap_servers: b, clint: {}}]", "kafka.0.clint: unknown key"),
        ("aws: [{account: '12', regions: [x]}]", "aws.0.account:"),
        (
            "jmx: [{role: app, cluster: c, url: u, app: a}]",
            "jmx endpoint u names cluster 'c', which isn't under `kafka`",
        ),
        ("tickets: {sink: roundup}", "needs `url`"),
        ("kafka: [{name: a, bootstrap_servers: x}, {name: a, bootstrap_servers: y}]", "cluster name used twice: a"),
        ("a: [", "not YAML: while parsing a flow node"),
        ("a: [", "at line 1, column 5"),
        ("aws: [{account: 111122223333, regions: [x]}]", "aws.0.account: Input should be a valid string: write it"),
        ("- a", "must hold keys and values, not a list"),
        ("ui_url: ${NOT_SET_ANYWHERE}", "ui_url: environment variable NOT_SET_ANYWHERE is not set"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, text: str, told: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(StreamwardenError) as error:
        load_config(file)
    assert str(error.value).startswith(str(file))
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_what_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(StreamwardenError, match=r": can't be read: Is a directory\.$"):
        load_config(tmp_path)
    (tmp_path / "latin.yaml").write_bytes("ui_url: größe".encode("latin-1"))
    with pytest.raises(StreamwardenError, match=r"latin\.yaml: not text in UTF-8"):
        load_config(tmp_path / "latin.yaml")


def test_a_bad_secret_is_not_shown(tmp_path: Path) -> None:
    file = write(
        tmp_path, "tickets: {sink: roundup, url: u, password: [hunter2]}\nkafka: [{name: a, bootstrap_servers: 1}]"
    )
    with pytest.raises(StreamwardenError) as error:
        load_config(file)
    assert "hunter2" not in str(error.value)


def test_no_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StreamwardenError, match=r"no such config file\. Copy streamwarden\.example\.yaml"):
        load_config(tmp_path / "none.yaml")

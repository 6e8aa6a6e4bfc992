"""Kafka Connect's REST API: a real worker with a failed task, and one plain gap per kind of failure."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from demo.jar_set import JarSet
from demo.jars import TOOLS, classpath
from demo.process import JVM_OPTIONS, Process, free_port
from streamwarden.base.config import CONFIG_ENV

from spark_apps.runtime.class_archive import java
from spark_apps.sources.kafka_connect import TRACE_CHARACTERS, KafkaConnect
from tests.spark_apps.sources.connect_api import connect_api
from tests.spark_apps.sources.reading import rows_of

Rows = list[dict[str, Any]]
FILES = JarSet(
    "connect-file",
    ("org.apache.kafka:connect-file:4.3.1",),
    transitive=False,
    lock=Path(__file__).with_name("connect_file.lock"),
)
Read = Callable[..., tuple[Rows, dict[str, str]]]


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Rows of connectors and tasks, and gaps by resource, of Connect clusters with these settings."""

    def rows(*connects: dict[str, Any], **options: str) -> tuple[Rows, dict[str, str]]:
        file = tmp_path / "streamwarden.yaml"
        cluster = {"name": "shop", "bootstrap_servers": "127.0.0.1:1", "connect": list(connects)}
        file.write_text(yaml.safe_dump({"kafka": [cluster]}))
        monkeypatch.setenv(CONFIG_ENV, str(file))
        source = KafkaConnect({"clusters": '["shop"]', **options})
        found = rows_of(source, "shop")
        return [row for row in found if row["connector"]], {row["resource"]: row["gap"] for row in found if row["gap"]}

    return rows


@pytest.mark.rare
@pytest.mark.slow
def test_a_real_worker_with_a_running_and_a_failed_task(kafka_broker: Any, read: Read, tmp_path: Path) -> None:
    port = free_port()
    url, worker = f"http://127.0.0.1:{port}", tmp_path / "worker.properties"
    settings = {
        "bootstrap.servers": kafka_broker.bootstrap_servers,
        "listeners": url,
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "offset.storage.file.filename": str(tmp_path / "offsets"),
    }
    worker.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    main = "org.apache.kafka.connect.cli.ConnectStandalone"
    command = [java(), *JVM_OPTIONS, "-cp", f"{classpath(TOOLS)}:{classpath(FILES)}", main, str(worker)]
    sink = {"connector.class": "FileStreamSink", "tasks.max": "1", "topics": "connect-test"}
    targets = {"runs": tmp_path / "target", "failed ü": tmp_path / "no" / "such" / "folder"}
    with Process("connect", command, tmp_path) as process, httpx.Client(base_url=url, timeout=30) as client:
        until(lambda: responds(client), process)
        for name, target in targets.items():
            created = client.post("/connectors", json={"name": name, "config": sink | {"file": str(target)}})
            assert created.status_code == httpx.codes.CREATED, created.text

        def states() -> list[tuple[str, int, str]]:
            rows, gaps = read({"name": "main", "url": url})
            assert gaps == {}
            return [(row["connector"], row["task_id"], row["state"]) for row in rows if row["task_id"] is not None]

        until(lambda: sorted(states()) == [("failed ü", 0, "FAILED"), ("runs", 0, "RUNNING")], process)
        rows, _ = read({"name": "main", "url": url})
        [failed] = [row for row in rows if row["state"] == "FAILED"]
        assert failed["trace"].startswith(
            "org.apache.kafka.connect.errors.ConnectException: Couldn't find or create file"
        )
        assert len(failed["trace"]) <= TRACE_CHARACTERS
        assert (failed["connector_type"], failed["group_id"]) == ("sink", "connect-failed ü")
        assert failed["worker"] == f"127.0.0.1:{port}"
        status = client.get(failed["url"].removeprefix(url) + "/status").json()
        assert status["tasks"][0]["state"] == "FAILED"


def responds(client: httpx.Client) -> bool:
    try:
        return client.get("/connectors").status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


def until(condition: Callable[[], bool], process: Process, seconds: float = 120) -> None:
    """Waits until the condition holds; raises if the process ends or the time is over."""
    deadline = time.monotonic() + seconds
    while not condition():
        process.check()
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def api() -> Iterator[str]:
    with connect_api() as url:
        yield url


def test_a_sink_has_its_group_and_no_row_has_a_secret(api: str, read: Read) -> None:
    rows, gaps = read({"name": "main", "url": f"{api}/good"}, {"name": "next", "url": f"{api}/good/"})
    assert gaps == {}
    assert [(row["connect_cluster"], row["connector"], row["task_id"], row["group_id"]) for row in rows[:4]] == [
        ("main", "s", None, "connect-s"), ("main", "s", 0, "connect-s"),
        ("main", "t", None, "mine"), ("main", "t", 0, "mine"),
    ]  # fmt: skip
    assert {row["connect_cluster"] for row in rows[4:]} == {"next"}
    assert rows[-1]["url"] == f"{api}/good/connectors/t"
    assert "hunter2" not in str(rows)


def test_a_trace_has_neither_credentials_of_urls_nor_what_postgresql_does_not_store(api: str, read: Read) -> None:
    rows, _ = read({"name": "main", "url": f"{api}/failed"})
    assert rows[-1]["trace"] == (
        "ConnectException: jdbc:postgresql://db:5432/shop\n"
        'Caused by: https://api.example/v1: For input string: "\ufffdabc"\n'
    )


def test_a_cluster_without_connectors_and_a_rebalance_are_no_gap(api: str, read: Read) -> None:
    assert read({"name": "main", "url": f"{api}/empty"}) == ([], {})
    rows, gaps = read({"name": "main", "url": f"{api}/rebalancing"})
    assert (len(rows), gaps) == (4, {})


def test_user_and_password(api: str, read: Read) -> None:
    connect = {"name": "main", "url": f"{api}/secured"}
    assert len(read(connect | {"user": "reader", "password": "hunter2"})[0]) == 2
    assert next(iter(read(connect)[1].values())).endswith("rejected user and password (401).")


@pytest.mark.parametrize(
    ("behavior", "reason"),
    [
        ("down", "responds to GET /connectors with status 503."),
        ("page", "responds to GET /connectors with something other than JSON."),
        ("other", "responds to GET /connectors with something other than connectors."),
        ("listing", "responds to GET /connectors with something other than connectors."),
        ("no_state", "responds to GET /connectors with something other than connectors."),
    ],
)
def test_a_failing_api_is_one_gap_and_the_others_are_read(api: str, read: Read, behavior: str, reason: str) -> None:
    rows, gaps = read({"name": "bad", "url": f"{api}/{behavior}"}, {"name": "main", "url": f"{api}/good"})
    assert len(rows) == 4
    assert list(gaps) == ["shop connect bad"]
    assert gaps["shop connect bad"].startswith("failed: Connect cluster 'bad' of 'shop' at http://127.0.0.1:")
    assert gaps["shop connect bad"].endswith(reason)


@pytest.mark.parametrize("behavior", ["no_number", "no_text"])
def test_values_of_another_type_are_one_gap_and_the_others_are_read(api: str, read: Read, behavior: str) -> None:
    rows, gaps = read({"name": "bad", "url": f"{api}/{behavior}"}, {"name": "main", "url": f"{api}/good"})
    assert len(rows) == 4
    assert list(gaps) == ["shop connect bad"]
    assert gaps["shop connect bad"].startswith("failed: unreadable data: ")


def test_a_refused_connection_and_an_hour_that_is_over_are_gaps(api: str, read: Read) -> None:
    _, gaps = read({"name": "bad", "url": "http://127.0.0.1:1", "user": "u", "password": "hunter2"})
    assert gaps == {"shop connect bad": "failed: Connect cluster 'bad' of 'shop' at http://127.0.0.1:1 did not"
                    " respond (ConnectError)."}  # fmt: skip
    earlier = (datetime.now(UTC) - timedelta(hours=5)).replace(minute=0, second=0, microsecond=0)
    rows, gaps = read({"name": "main", "url": f"{api}/good"}, hour=earlier.isoformat())
    assert rows == []
    assert "Kafka Connect" in gaps["shop connect main"]

"""A real Kafka Streams application that fails: a thread, then its client by a record, or the process repeatedly."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from confluent_kafka import ConsumerGroupState, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from demo.broker import Broker, create_topics
from demo.jar_set import ensure
from demo.jars import JOLOKIA, STREAMS, classpath
from demo.process import Jvm, free_port
from streamwarden.base.config import CONFIG_ENV, Config
from streamwarden.base.hours import HOUR
from streamwarden.detectors import load_detectors
from streamwarden.detectors.evaluate import findings

from spark_apps.submit import run_app
from tests.clock import present_hour
from tests.spark_apps.jolokia import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.rare, pytest.mark.timeout(600)]
FOLDER = Path(__file__).parent
DEADLINE_SECONDS = 120


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path) as running:
        create_topics(running.bootstrap_servers, NewTopic("orders", 2))
        yield running


def mortal(broker: Broker, folder: Path, port: int, *options: str) -> Jvm:
    arguments = [str(FOLDER / "MortalApp.java"), broker.bootstrap_servers, str(folder / "state")]
    return Jvm(
        "mortal", arguments, folder, classpath=classpath(STREAMS), agent=ensure(JOLOKIA)[0], jolokia_port=port,
        options=["-Xmx96m", *options],
    )  # fmt: skip


def config_of(broker: Broker, port: int, rmi_port: int | None = None) -> Config:
    endpoint = {"role": "app", "app": "mortal", "cluster": "demo", "url": f"http://127.0.0.1:{port}/jolokia"}
    by_rmi = [endpoint | {"protocol": "jmx_rmi", "url": f"127.0.0.1:{rmi_port}"}] if rmi_port else []
    return Config.model_validate(
        {
            "kafka": [{"name": "demo", "bootstrap_servers": broker.bootstrap_servers}],
            "jmx": [endpoint, *by_rmi],
            "gathering": {"jmx_samples": 2, "jmx_sample_seconds": 0.5},
        }
    )


RUN = timedelta(minutes=2)
"""How long each life lasts in the warehouse, beside its seconds in the test."""


def send(broker: Broker, value: str, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("orders", value=value, partition=partition)
    assert producer.flush(30) == 0


def wait_for(port: int, wanted: dict[str, Any]) -> None:
    """Waits until the MBeans of the client expose these attributes, e.g. {"state": "RUNNING"}."""
    wait_until(
        f"http://127.0.0.1:{port}/jolokia",
        "kafka.streams:type=stream-metrics,*",
        lambda beans: wanted.items() <= {name: value for bean in beans for name, value in bean.items()}.items(),
    )


def wait_for_members(broker: Broker, number: int) -> None:
    """Waits until the application's group has so many members, each with its assignment."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    deadline = time.monotonic() + DEADLINE_SECONDS
    group = admin.describe_consumer_groups(["mortal"])["mortal"].result()
    while len(group.members) != number or (number and group.state != ConsumerGroupState.STABLE):
        assert time.monotonic() < deadline
        time.sleep(0.3)
        group = admin.describe_consumer_groups(["mortal"])["mortal"].result()


def _gather(spark: Any, hour: datetime, config: Config) -> None:
    for app in ("jvm_apps", "consumer_groups"):
        run_app(spark, app, hour, config)


def _put_back(warehouse: sa.Engine, hour: datetime, hours: int) -> None:
    """Moves the gathered rows of a process so many hours back: a live process exposes the present only."""
    earlier = hour - hours * HOUR
    with warehouse.begin() as connection:
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": earlier.date()})
        moved = sa.text("update metrics.jvm_app_hourly set hour = :earlier where hour = :hour")
        connection.execute(moved, {"earlier": earlier, "hour": hour})


def _start_earlier(warehouse: sa.Engine, by: timedelta) -> None:
    """Moves the newest start: hours that report starts within a minute of each other report one start."""
    newest = "(select max(process_started_at) from metrics.jvm_app_hourly)"
    with warehouse.begin() as connection:
        connection.execute(
            sa.text(
                "update metrics.jvm_app_hourly set process_started_at = process_started_at - :by"
                f" where process_started_at = {newest}"
            ),
            {"by": by},
        )


def finding_of(warehouse: sa.Engine, rule: str, hour: datetime, params: dict[str, Any]) -> Any:
    detector = load_detectors()[rule]
    with warehouse.connect() as connection:
        said = findings(connection, detector, hour, Config(), detector.params_in_force(Config()) | params)
    return next(one for one in said if "rmi:" not in one.resource.key)


def row_by_rmi(warehouse: sa.Engine, hour: datetime) -> tuple[Any, ...]:
    """Stream threads alive, stream threads failed, and the client's state, as read over RMI."""
    columns = "stream_threads_alive, stream_threads_failed, streams_state"
    with warehouse.connect() as connection:
        query = f"select {columns} from metrics.jvm_app_hourly where hour = :hour and endpoint like 'rmi:%'"
        return tuple(connection.execute(sa.text(query), {"hour": hour}).one())


def test_dead_stream_threads(
    broker: Broker, warehouse: sa.Engine, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hour, port, rmi_port = present_hour(), free_port(), free_port()
    config = config_of(broker, port, rmi_port)
    file = tmp_path / "streamwarden.yaml"
    file.write_text(config.model_dump_json(exclude_unset=True))
    monkeypatch.setenv(CONFIG_ENV, str(file))
    monkeypatch.setitem(spark.sparkContext.environment, CONFIG_ENV, str(file))

    def said() -> Any:
        return finding_of(warehouse, "stream_threads_dead", hour, {"settle_minutes": 0})

    settings = {"port": rmi_port, "rmi.port": rmi_port, "host": "127.0.0.1", "ssl": "false", "authenticate": "false"}
    rmi = [f"-Dcom.sun.management.jmxremote.{name}={value}" for name, value in settings.items()]
    with mortal(broker, tmp_path, port, "-Djava.rmi.server.hostname=127.0.0.1", *rmi):
        wait_for(port, {"state": "RUNNING", "alive-stream-threads": 3})
        _gather(spark, hour - HOUR, config)
        send(broker, "die alone")
        wait_for(port, {"state": "RUNNING", "alive-stream-threads": 2})
        wait_for_members(broker, 2)
        run_app(spark, "jvm_apps", hour, config)
        alone, alone_by_rmi = said(), row_by_rmi(warehouse, hour)
        send(broker, "hang", partition=1)
        send(broker, "die")
        wait_for(port, {"state": "PENDING_ERROR"})
        run_app(spark, "jvm_apps", hour, config)
        hung, hung_by_rmi = said(), row_by_rmi(warehouse, hour)
        (tmp_path / "released").touch()
        wait_for_members(broker, 0)
        _gather(spark, hour, config)
    figures = ("alive_threads", "baseline_threads", "failed_threads", "streams_state")
    assert (alone.reason, *map(alone.metrics.get, figures)) == ("some_dead", 2, 3, 1, "RUNNING")
    assert (*alone_by_rmi, hung_by_rmi[-1]) == (2, 1, "RUNNING", "PENDING_ERROR")
    assert (hung.reason, hung.metrics["streams_state"]) == ("error", "PENDING_ERROR")
    closed = said()
    # The client has closed itself and exposes no metrics. The empty group shows that it is dead.
    assert (closed.reason, closed.metrics["previous_threads"], closed.metrics["members"]) == ("closed", 3, 0)


def test_a_crash_looping_process(broker: Broker, warehouse: sa.Engine, spark: Any, tmp_path: Path) -> None:
    """Three processes that are killed, and a fourth; each is sampled once, as hourly runs would have done."""
    hour, port = present_hour(), free_port()
    for ago in (3, 2, 1, 0):
        with mortal(broker, tmp_path, port) as app:
            wait_for(port, {"alive-stream-threads": 3})
            run_app(spark, "jvm_apps", hour, config_of(broker, port))
            _put_back(warehouse, hour, ago)
            _start_earlier(warehouse, ago * RUN)
            os.kill(app.pid, signal.SIGKILL)
    # Lifetimes of seconds are as regular as those of a scheduled job.
    said = finding_of(warehouse, "app_crash_looping", hour, {"regular_seconds": -1})
    assert (said.reason, said.metrics["short_runs"]) == ("restarting", 3)
    assert 1 < said.metrics["shortest_run_seconds"] - RUN.total_seconds() < DEADLINE_SECONDS
    assert len({life["started_at"] for life in said.metrics["ended_runs"]}) == 3
    assert finding_of(warehouse, "app_crash_looping", hour, {}).reason == "scheduled"

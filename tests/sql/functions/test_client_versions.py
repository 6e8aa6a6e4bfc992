"""View client_versions: connected client libraries, their versions, and known bugs of these."""

from __future__ import annotations

import json

import pytest
import sqlalchemy as sa

from tests.sql.rows import HOUR, insert_row

JAVA, PYTHON = "apache-kafka-java", "confluent-kafka-python"
COMPARED = [
    (JAVA, "3.2.3", ["KAFKA-10888"]),
    (JAVA, "3.3.0", None),
    (JAVA, "2.4.0-ccs", ["KAFKA-10888"]),
    ("kafka-streams", "2.2.0", ["KAFKA-8323"]),
    ("kafka-streams", "2.10.0", None),
    ("kafka-streams", "4.1.0", ["KAFKA-19748"]),
    ("kafka-streams", "4.1.1", None),
    ("kafka-streams", "4.3.0", ["KAFKA-20616"]),
    ("librdkafka", "1.5.2", ["librdkafka#3020"]),
    ("librdkafka", "1.6.1", ["librdkafka#3306", "librdkafka#4527"]),
    ("librdkafka", "2.4.0", None),
    (PYTHON, "2.16.1-rdkafka-2.16.0", None),
    (PYTHON, "2.3.0-rdkafka-2.3.0", ["librdkafka#4527"]),
    ("unknown", "unknown", None),
    ("sarama", "1.4", None),
]


def _connected(connection: sa.Connection, client: str, version: str, count: float, endpoint: str = "b:1") -> None:
    labels = json.dumps({"client": client, "listener": "PUBLIC", "version": version})
    row = {"metric": "client_connections", "labels": labels, "at": HOUR, "kind": "gauge", "value": count}
    insert_row(connection, "metrics.broker_sample", {"hour": HOUR, "cluster": "c", "endpoint": endpoint, **row})


def _runs(connection: sa.Connection, app: str, version: str) -> None:
    row = {"metric": "streams_version", "labels": json.dumps({"version": version}), "at": HOUR, "kind": "gauge"}
    insert_row(
        connection, "metrics.jvm_app_sample",
        {"hour": HOUR, "cluster": "c", "app": app, "endpoint": f"{app}:1", "value": 1, **row},
    )  # fmt: skip


@pytest.mark.parametrize(("client", "version", "faults"), COMPARED)
def test_known_bugs_of_a_version(warehouse: sa.Engine, client: str, version: str, faults: list[str] | None) -> None:
    with warehouse.begin() as connection:
        if client == "kafka-streams":  # on a fleet whose brokers are not read over JMX
            insert_row(
                connection, "metrics.jvm_app_hourly",
                {"hour": HOUR, "cluster": "c", "app": "orders", "endpoint": "orders:1"},
            )  # fmt: skip
            _runs(connection, "orders", version)
        else:
            insert_row(connection, "metrics.broker_hourly", {"hour": HOUR, "cluster": "c", "endpoint": "b:1"})
            _connected(connection, client, version, 3)
        output = sa.text("select client, version, known_faults from client_versions")
        assert connection.execute(output).all() == [(client, version, faults)]


def test_connections_are_summed_over_brokers_and_old_readings_are_left_out(warehouse: sa.Engine) -> None:
    with warehouse.begin() as connection:
        insert_row(connection, "metrics.broker_hourly", {"hour": HOUR, "cluster": "c", "endpoint": "b:1"})
        _connected(connection, JAVA, "4.0.0", 3)
        _connected(connection, JAVA, "4.0.0", 4, "b:2")
        _connected(connection, JAVA, "3.9.0", 0)
        _runs(connection, "orders", "4.0.0")
        _runs(connection, "bills", "4.0.0")
        output = sa.text("select client, version, listener, connections, applications from client_versions")
        assert connection.execute(output).all() == [
            (JAVA, "4.0.0", "PUBLIC", 7, None),
            ("kafka-streams", "4.0.0", None, None, ["bills", "orders"]),
        ]

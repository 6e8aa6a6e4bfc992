"""The app state_stores on a real broker: real changelogs are read, profiled, loaded, and evaluated."""

from __future__ import annotations

import hashlib
import json
import struct
import time
import uuid
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql.types import StructType
from streamwarden.base.config import CONFIG_ENV, Config, load_config
from streamwarden.detectors import evaluate, load_detectors

from spark_apps.apps.state_stores import schema_report
from spark_apps.models.json_shapes import paths_of
from spark_apps.models.value_shapes import _context_topic, _has_record_context, shapes_of
from spark_apps.runtime.driver_rows import driver_rows
from spark_apps.sources.changelog_values import ChangelogReader, ChangelogValues
from spark_apps.submit import run_app
from tests.spark_apps.models.test_schema_versions import shape
from tests.spark_apps.sources.registry import registry
from tests.variations import rare_after

pytestmark = pytest.mark.slow
HOUR = datetime(2026, 1, 5, 10, tzinfo=UTC)


@pytest.fixture
def cluster(kafka_broker: Any, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """A config that names the broker's cluster, in force here and in Spark's tasks."""
    file = tmp_path / "streamwarden.yaml"
    settings = {
        "kafka": [{"name": "shop", "bootstrap_servers": kafka_broker.bootstrap_servers}],
        "gathering": {"show_example_values": True},
        "jobs": {"changelog_patterns": ["seen-by-(?P<job>.+)"]},
    }
    file.write_text(yaml.safe_dump(settings))
    monkeypatch.setenv(CONFIG_ENV, str(file))
    monkeypatch.setitem(spark.sparkContext.environment, CONFIG_ENV, str(file))
    return load_config(file)


@pytest.fixture
def changelog(cluster: Config) -> Iterable[Callable[..., str]]:
    """Creates the changelog of a new application and writes values to it in order, ten per second by default."""
    servers = cluster.kafka[0].bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    made: list[str] = []

    def make(
        values: Iterable[Any],
        *,
        partitions: int = 2,
        start: datetime = HOUR,
        step_ms: int = 100,
        key: Callable[[int], bytes] = lambda i: f"k-{i}".encode(),
        name: str = "app{}-latest-changelog",
        policy: str = "compact,delete",
    ) -> str:
        topic = name.format(uuid.uuid4().hex[:6])
        # As Kafka Streams creates it.
        config = {"cleanup.policy": policy, "retention.ms": "-1", "message.timestamp.type": "CreateTime"}
        admin.create_topics([NewTopic(topic, partitions, 1, config=config)])[topic].result()
        made.append(topic)
        write(servers, topic, values, start, partitions=partitions, step_ms=step_ms, key=key)
        return topic

    yield make
    there = set(AdminClient({"bootstrap.servers": servers}).list_topics(timeout=5).topics)
    for future in admin.delete_topics(sorted(there & set(made))).values() if there & set(made) else ():
        future.result()
    # Deletion is asynchronous: the next test lists the topics again.
    deadline = time.monotonic() + 10
    while set(made) & set(AdminClient({"bootstrap.servers": servers}).list_topics(timeout=5).topics):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def write(
    servers: str,
    topic: str,
    values: Iterable[Any],
    start: datetime,
    *,
    partitions: int = 2,
    step_ms: int = 100,
    key: Callable[[int], bytes] = lambda i: f"k-{i}".encode(),
) -> None:
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "queue.buffering.max.messages": 1_000_000})
    start_ms = int(start.timestamp() * 1000)
    for i, value in enumerate(values):
        raw = value if isinstance(value, bytes | None) else json.dumps(value).encode()
        producer.produce(topic, raw, key(i), partition=i % partitions, timestamp=start_ms + i * step_ms)
    assert producer.flush(30) == 0


@pytest.fixture
def run_hour(spark: Any, cluster: Config, warehouse: sa.Engine) -> Callable[..., dict[str, dict[str, Any]]]:
    """Runs the app for an hour and evaluates the detector: its rows by topic."""

    def run(hour: datetime = HOUR, config: Config = cluster) -> dict[str, dict[str, Any]]:
        run_app(spark, "state_stores", hour, config)
        detector = load_detectors()["state_store_schema_drift"]
        run = evaluate(warehouse, detector, hour, config)
        assert run.status == "evaluated", run.message
        rows = select(warehouse, "select * from detect.evaluation where hour = :hour", hour=hour)
        return {row["resource_name"].split("/")[1]: row for row in rows}

    return run


def select(warehouse: sa.Engine, query: str, **binds: Any) -> list[dict[str, Any]]:
    with warehouse.connect() as connection:
        return [dict(row) for row in connection.execute(sa.text(query), binds).mappings()]


def tables(warehouse: sa.Engine) -> dict[str, list[dict[str, Any]]]:
    names = ("state_store_hourly", "state_store_path_hourly", "state_store_change_hourly")
    return {name: select(warehouse, f"select * from metrics.{name} order by 1, 2, 3, 4, 5, 6") for name in names}


def order(i: int, **changed: Any) -> dict[str, Any]:
    return {"id": f"o-{i}", "quantity": i % 9, "address": {"city": "Köln", "postcode": f"{i:05d}"}, **changed}


def test_a_type_change_within_the_hour_is_critical_and_named(
    changelog: Any, run_hour: Any, warehouse: sa.Engine
) -> None:
    old = [order(i) for i in range(400)]
    new = [order(i, quantity=str(i % 9), address={"city": "Köln"}) for i in range(400)]
    topic = changelog(old + new)
    found = run_hour()[topic]
    assert found["status"] == "firing"
    assert found["severity"] == "critical"
    assert "$.quantity" in found["message"]
    changes = select(warehouse, "select * from metrics.state_store_change_hourly order by path")
    assert [(c["path"], c["change"], c["old_type"], c["new_type"]) for c in changes] == [
        ("$.address.postcode", "field_removed", "string", None),
        ("$.quantity", "type_changed", "integer", "string"),
    ]
    quantity = changes[1]
    assert (quantity["old_count"], quantity["new_count"]) == (400, 400)
    assert (quantity["old_last_offset"], quantity["new_first_offset"]) == ("1:199", "0:200")
    assert quantity["new_first_at"] == HOUR + timedelta(seconds=40)
    assert (quantity["old_example"], quantity["new_example"]) == ("3", '"0"')
    first = tables(warehouse)
    [store] = first["state_store_hourly"]
    assert (store["format"], store["windowed"], store["versions"], store["records"]) == ("json", False, 2, 800)
    assert (store["application_id"], store["store"]) == (topic.removesuffix("-latest-changelog"), "latest")
    run_hour()
    assert tables(warehouse) == first


@pytest.mark.rare
def test_a_change_stays_known_while_old_values_are_in_the_log_and_no_longer(
    changelog: Any, run_hour: Any, cluster: Config
) -> None:
    topic = changelog([order(i) for i in range(400)])
    later, last = HOUR + timedelta(hours=1), HOUR + timedelta(hours=2)
    assert run_hour()[topic]["status"] == "ok"
    servers = cluster.kafka[0].bootstrap_servers
    write(servers, topic, [order(i, quantity=str(i)) for i in range(400)], later)
    assert run_hour(later)[topic]["severity"] == "critical"
    assert run_hour(last)[topic]["severity"] == "critical"
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.delete_records([TopicPartition(topic, p, 200) for p in range(2)]).values():
        future.result()
    assert run_hour(last)[topic]["status"] == "ok"


@pytest.mark.rare
def test_values_that_are_not_json_are_named_and_windows_are_recognized(
    changelog: Any, run_hour: Any, warehouse: sa.Engine
) -> None:
    window_ms = int(HOUR.timestamp() * 1000)
    topics = {
        changelog([struct.pack(">q", i) for i in range(100)]): ("long", False, "ok"),
        changelog([b"\x00" + struct.pack(">i", 7) + b"\x06abc" * 3] * 100): ("framed", False, "unknown"),
        changelog([b"plain text"] * 100): ("string", False, "unknown"),
        changelog([b"\xff\xfe\x00\x80" * 5] * 100): ("binary", False, "unknown"),
        changelog([None] * 100): (None, False, "unknown"),
        changelog([]): (None, None, "unknown"),
        changelog([{"orders": 1}] * 100, key=lambda i: b"c-1" + struct.pack(">q", window_ms) + struct.pack(">i", 0)): (
            "json",
            True,
            "ok",
        ),
        changelog(
            [{"orders": 1}] * 100, key=lambda i: b"c-1" + struct.pack(">q", window_ms) + struct.pack(">q", window_ms)
        ): ("json", True, "ok"),
        changelog([{"a": i} if i % 20 else b"not json" for i in range(200)] + [None] * 10): ("json", False, "ok"),
    }
    found = run_hour()
    stores = {row["topic"]: row for row in select(warehouse, "select * from metrics.state_store_hourly")}
    assert {t: (s["format"], s["windowed"], found[t]["status"]) for t, s in stores.items()} == topics
    slips = stores[list(topics)[-1]]
    assert (slips["unreadable_values"], slips["tombstones"], slips["values_profiled"]) == (10, 10, 200)


def framed(schema_id: int, payload: bytes = b"\x06abc\x02") -> bytes:
    return b"\x00" + struct.pack(">i", schema_id) + payload


def avro(*fields: tuple[str, Any]) -> str:
    return json.dumps(
        {"type": "record", "name": "Order", "fields": [{"name": name, "type": kind} for name, kind in fields]}
    )


def registered(schema_id: int, subject: str, version: int, kind: str, schema: str, *imports: str) -> dict[str, Any]:
    row = {"subject": subject, "version": version, "id": schema_id, "schemaType": kind, "schema": schema}
    references = [{"name": f"{name}.proto", "subject": name, "version": 1} for name in imports]
    return row | ({"references": references} if references else {})


MONEY = 'syntax = "proto3"; message Money { int64 units = 1; }'
BILL = 'syntax = "proto3"; import "money.proto"; message Other {} message Bill { Money sum = 1; %s }'
SCHEMAS = [
    registered(101, "orders-value", 1, "AVRO", avro(("id", "int"), ("name", "string"))),
    registered(102, "orders-value", 2, "AVRO", avro(("id", "long"), ("name", "string"))),
    registered(103, "orders-value", 3, "AVRO", avro(("id", "long"), ("name", "string"), ("tier", "string"))),
    registered(104, "money", 1, "PROTOBUF", MONEY),
    registered(105, "bills-value", 1, "PROTOBUF", BILL % "string who = 2;", "money"),
    registered(106, "bills-value", 2, "PROTOBUF", BILL % "string who = 2; int32 line = 3;", "money"),
    registered(107, "carts-value", 1, "JSON", '{"type": "object", "properties": {"a": {"type": "string"}}}'),
    registered(108, "carts-value", 2, "JSON", '{"type": "object", "properties": {"a": {"type": ["string", "null"]}}}'),
    registered(109, "bills-value", 3, "PROTOBUF", 'import "nowhere.proto";'),
]


@pytest.fixture
def schema_registry(cluster: Config, tmp_path: Path) -> Iterable[Config]:
    """The config with a Schema Registry that knows SCHEMAS."""
    with registry(SCHEMAS) as (url, _):
        settings = cluster.model_dump(mode="json", include={"kafka", "gathering"})
        settings["kafka"][0]["schema_registry"] = {"url": f"{url}/good"}
        (tmp_path / "streamwarden.yaml").write_text(yaml.safe_dump(settings))
        yield load_config(tmp_path / "streamwarden.yaml")


@pytest.mark.rare
def test_a_samza_jobs_changelog_is_read_as_the_config_says(changelog: Any, run_hour: Any, warehouse: sa.Engine) -> None:
    values = [order(i) for i in range(200)] + [order(i, quantity=str(i)) for i in range(200)]
    topic = changelog(values, name="seen-by-job{}", policy="compact")
    decoy = changelog(values, name="seen-by-somebody-{}", policy="delete")
    found = run_hour()
    assert (found[topic]["status"], found[topic]["severity"]) == ("firing", "critical")
    assert decoy not in found
    [store] = select(warehouse, "select * from metrics.state_store_hourly")
    assert (store["application_id"], store["store"]) == (topic.removeprefix("seen-by-"), topic)


def test_four_bytes_that_are_no_length_are_no_record_context(spark: Any) -> None:
    """A value of an Avro or binary format has any bytes where a buffer of Kafka Streams has the length of a name."""
    values = [(b"\x07" * 16 + struct.pack(">I", length) + b"topic",) for length in (5, 2**31, 2**32 - 1)]
    times = [(struct.pack(">q", 1_790_000_000_000) + value[8:],) for (value,) in values]
    frame = driver_rows(spark, values + times, "value binary")
    found = frame.select(_context_topic().alias("topic"), _has_record_context().alias("is_own")).collect()
    assert [row.topic for row in found] == ["topic", None, None] * 2
    assert [row.is_own for row in found] == [False] * 3 + [True, False, False]


@pytest.mark.rare
def test_framed_values_are_evaluated_by_their_registered_schemas(
    changelog: Any, run_hour: Any, schema_registry: Config, warehouse: sa.Engine
) -> None:
    bill = b"\x02\x02\x0a\x02\x08\x05"  # the file's second message
    topics = {
        "widened": changelog([framed(101)] * 60 + [framed(102)] * 60),
        "grown": changelog([framed(101)] * 60 + [framed(102)] * 60 + [framed(103)] * 60),
        "back": changelog([framed(102)] * 60 + [framed(103)] * 30 + [framed(102)] * 90),
        "added": changelog([framed(105, bill)] * 60 + [framed(106, bill)] * 60),
        "nullable": changelog([framed(107, b'{"a":"x"}')] * 60 + [framed(108, b'{"a":null}')] * 6),
        "one": changelog([framed(101)] * 10),
        "short": changelog([framed(101, b"\x02\x02a")] * 60),  # as long as a serialised long
        "unknown": changelog([framed(101)] * 60 + [framed(77)] * 60),
        "broken": changelog([framed(105, bill)] * 60 + [framed(109, bill)] * 60),
        "moved": changelog([order(i) for i in range(60)] + [framed(101)] * 60),
    }
    changelog([b"\x00" + struct.pack(">I", 2**31 + i) + b"no registry's" for i in range(60)])  # an id has 31 bits
    rows = run_hour(config=schema_registry)
    found = {name: (rows[topic]["status"], rows[topic]["severity"]) for name, topic in topics.items()}
    alarms = {"widened": "warning", "grown": "critical", "back": "warning", "nullable": "warning", "moved": "critical"}
    assert {name: severity for name, (status, severity) in found.items() if status == "firing"} == alarms
    assert {name for name, (status, _) in found.items() if status == "ok"} == {"added", "one", "short"}
    assert "schema 77 is not known to any registry" in rows[topics["unknown"]]["message"]
    assert "schema 109 (bills-value v3) does not compile" in rows[topics["broken"]]["message"]
    assert rows[topics["grown"]]["details"][0].startswith("$.tier: field added (absent → string). $.id: type widened")
    query = "select * from metrics.state_store_change_hourly where topic = :topic order by old_version, path"
    grown = select(warehouse, query, topic=topics["grown"])
    assert [(c["old_schema_id"], c["path"], c["change"], c["breaks_backward"], c["breaks_forward"]) for c in grown] == [
        (101, "$.id", "type_widened", False, True),
        (101, "$.tier", "field_added", True, False),
        (102, "$.tier", "field_added", True, False),
    ]
    assert {(c["new_schema_id"], c["old_count"], c["new_count"], c["new_first_offset"]) for c in grown} == {
        (103, 60, 60, "0:60")
    }
    [nullable] = select(warehouse, query, topic=topics["nullable"])
    assert (nullable["path"], nullable["old_example"], nullable["new_example"]) == ("$.a", '"x"', "null")
    back = select(warehouse, query, topic=topics["back"])
    assert [(c["path"], c["change"], c["old_schema_id"], c["new_schema_id"]) for c in back] == [
        ("$.tier", "field_removed", 103, 102)
    ]


@pytest.mark.rare
def test_schemas_of_an_unreachable_registry_come_from_earlier_hours(
    changelog: Any, run_hour: Any, schema_registry: Config, cluster: Config, warehouse: sa.Engine
) -> None:
    with warehouse.begin() as connection:
        connection.execute(
            sa.text("insert into inventory.registered_schema values ('shop', :id, 'AVRO', :schema, null)"),
            [{"id": row["id"], "schema": row["schema"]} for row in SCHEMAS[:3]],
        )
    topic = changelog([framed(102)] * 60 + [framed(103)] * 60)
    found = run_hour(config=cluster)[topic]
    assert (found["status"], found["severity"]) == ("firing", "critical")


@pytest.mark.rare
def test_a_large_log_is_sampled_and_a_rare_old_version_found(
    changelog: Any, run_hour: Any, cluster: Config, warehouse: sa.Engine
) -> None:
    sampled = cluster.model_copy(
        update={"gathering": cluster.gathering.model_copy(update={"changelog_sample_values": 4000})}
    )
    # 2 % of the older values in one stretch, and 4,000 read of 60,000.
    old = [order(i, quantity=str(i)) if 5000 <= i < 5600 else order(i) for i in range(30_000)]
    start = HOUR - timedelta(minutes=50)
    topic = changelog(old + [order(i) for i in range(30_000)], start=start, step_ms=100)
    found = run_hour(config=sampled)[topic]
    [store] = select(warehouse, "select * from metrics.state_store_hourly")
    assert 3900 <= store["values_profiled"] <= 4100
    assert store["values_total"] == 60_000
    assert (found["status"], found["severity"]) == ("firing", "critical")
    assert "$.quantity" in found["message"]


def test_shapes_of_spark_are_those_of_the_model_tests(spark: Any) -> None:
    values = [
        {"a": 1, "b c": [], "d": None, "e": [1, 2], "f": {"g": True, "h": []}, "i": "x"},
        {"f": [{"a": 1}], "k": ["a", 1]},
    ]
    frame = driver_rows(
        spark,
        [("t", i, json.dumps(value).encode()) for i, value in enumerate(values)],
        "resource string, position bigint, value binary",
    )
    found = {row["first"]: row["shape"] for row in shapes_of(frame).collect()}
    for i, value in enumerate(values):
        assert set(paths_of(found[i])) == set(paths_of(shape(value)))


WRITTEN_MS = 1_767_600_000_000


def suppressed(i: int, *, event_ms: int = WRITTEN_MS) -> bytes:
    """A value of the changelog of `suppress()` (BufferValue, with the time by which it is sorted at its end)."""
    context = struct.pack(">qqi", event_ms + i * 60_000, i, 6) + b"orders" + struct.pack(">ii", 0, 0)
    value = json.dumps({"n": i}).encode()
    return context + struct.pack(">iii", -1, -1, len(value)) + value + struct.pack(">q", event_ms)


def subscription(i: int, version: int = 0) -> bytes:
    """A value of a foreign-key join's subscription store (SubscriptionWrapper): version, instruction, hash, key."""
    return bytes([version, i % 2]) + hashlib.sha256(str(i).encode()).digest()[:16] + b"key"


def outer(*entries: bytes) -> bytes:
    """A value of an outer join's store (ListSerializer)."""
    lengths = (struct.pack(">i", len(entry)) + entry for entry in entries)
    return b"\x01" + struct.pack(">i", len(entries)) + b"".join(lengths)


FORMATS = {
    "app-KTABLE-SUPPRESS-STATE-STORE-0000000004-changelog": ([suppressed(i) for i in range(600)], {"BINARY"}),
    "app-of-my-name-store-changelog": ([suppressed(i) for i in range(600)], {"BINARY"}),
    "app-replayed-store-changelog": (
        [suppressed(i, event_ms=WRITTEN_MS - 90 * 86_400_000) for i in range(600)],
        {"BINARY"},
    ),
    "app-KSTREAM-JOIN-0000000007-Buffer-changelog": ([suppressed(i)[:-8] for i in range(50)], {"BINARY"}),
    "app-KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-0000000006-changelog": (
        [subscription(i) for i in range(300)] + [subscription(i, 1) for i in range(300)],
        {"BINARY"},
    ),
    "app-buyer-subscription-store-changelog": ([subscription(0)] * 50, {"BINARY"}),
    "app-KSTREAM-OUTERSHARED-0000000005-store-changelog": (
        [outer(b"\x01" + framed(256))] * 50 + [outer(b"\x00{}", b"\x01[]")] * 50,
        {"BINARY"},
    ),
    # A custom format that begins with a zero byte: as many ids as values.
    "app-own-changelog": ([b"\x00" + hashlib.sha256(str(i).encode()).digest() for i in range(300)], {"BINARY"}),
    # A few ids, each of many values, far beyond those of the registry.
    "app-flags-changelog": ([struct.pack(">?iq", False, 0x01010100 + i % 4, i) for i in range(300)], {"BINARY"}),
    # Registries that are not read, and ids of known schemas that look like a timestamp.
    "app-unknown-changelog": ([framed(7)] * 50 + [framed(8)] * 50, {"FRAMED 7", "FRAMED 8"}),
    "app-mixed-changelog": ([framed(105_357)] * 50 + [framed(9)], {"FRAMED 105357", "FRAMED 9"}),
}


@pytest.mark.parametrize("topic", rare_after(2, FORMATS))
def test_a_value_that_begins_with_a_zero_byte_is_a_frame_with_evidence_only(spark: Any, topic: str) -> None:
    values, expected = FORMATS[topic]
    rows = [(f"c/{topic}", (WRITTEN_MS + i) << 20, value) for i, value in enumerate(values)]
    frame = driver_rows(spark, rows, "resource string, position bigint, value binary")
    known = driver_rows(spark, [("c", 256), ("c", 105_357)], "cluster string, schema_id int")
    found = shapes_of(frame, known).collect()
    assert {row["shape"] for row in found} == expected and sum(row["count"] for row in found) == len(values)


@pytest.mark.rare
def test_a_cluster_that_does_not_respond_is_a_gap_and_the_others_are_read(
    spark: Any, changelog: Any, cluster: Config, warehouse: sa.Engine, tmp_path: Path
) -> None:
    topic = changelog([order(i) for i in range(100)])
    two = cluster.model_dump(mode="json", include={"kafka"})
    two["kafka"].append({"name": "gone", "bootstrap_servers": "127.0.0.1:1"})
    (tmp_path / "streamwarden.yaml").write_text(yaml.safe_dump(two))
    run_app(spark, "state_stores", HOUR, load_config(tmp_path / "streamwarden.yaml"))
    coverage = {row["resource_name"]: row for row in select(warehouse, "select * from detect.coverage")}
    assert coverage["gone"]["status"] == "failed"
    assert "no broker of cluster 'gone' at 127.0.0.1:1" in coverage["gone"]["message"]
    assert coverage[f"shop/{topic}"]["status"] == "complete"
    assert len(select(warehouse, "select * from metrics.state_store_hourly where values_profiled = 100")) == 1


@pytest.mark.rare
def test_a_topic_deleted_while_it_is_read_is_a_gap(changelog: Any, cluster: Config) -> None:
    topic = changelog([order(i) for i in range(100)])
    options = {"clusters": '["shop"]', "hour": HOUR.isoformat(), "sample_values": "1000"}
    schema = StructType.fromDDL(ChangelogValues(options).schema())
    reader = ChangelogReader(options, schema)
    [part] = [part for part in reader.partitions() if part.topic == topic]  # type: ignore[attr-defined]
    admin = AdminClient({"bootstrap.servers": cluster.kafka[0].bootstrap_servers})
    admin.delete_topics([topic])[topic].result()
    rows = [row for batch in reader.read(part) for row in batch.to_pylist()]
    gaps = {row["gap"] for row in rows if row["gap"]}
    assert gaps == {f"missing: topic '{topic}' was deleted while it was read."}


def test_a_new_constant_is_found_in_a_sample_of_the_values_and_masked(spark: Any) -> None:
    known = ("new", "paid", "sent", "lost")
    states = ["held" if n >= 1800 and n % 5 == 0 else known[n % 4] for n in range(3000)]
    rows = [
        ("c/t", 0, n, ((1_767_000_000_000 + n * 60_000) << 20) | n, json.dumps({"state": state}).encode())
        for n, state in enumerate(states)
    ]
    schema = "resource string, partition int, offset bigint, position bigint, value binary"
    [report] = schema_report(driver_rows(spark, rows, schema), None, show_values=False).collect()
    [change] = report.changes
    assert (change.path, change.change, change.old_type, change.new_type) == (
        "$.state", "constant_added", None, '"xxxx"',
    )  # fmt: skip
    assert (change.breaks_backward, change.breaks_forward, change.strict_only) == (False, True, True)
    assert 1750 < change.old_count < 1900
    assert 200 < change.new_count < 280
    assert change.new_first_offset.startswith("0:18")

"""The demo's clients, each in its own process: `python -m demo.load shop|billing|cold|rogue …`.

- `shop SERVERS`: produces order events as JSON; SIGUSR1 deploys an incompatible schema (the fault `schema`).
- `billing SERVERS`: a healthy consumer group, which keeps up and commits.
- `cold SERVERS`: writes many segments of yesterday's data to the topic `clickstream`, once.
- `rogue SERVERS SEGMENT_FOLDER`: the fault `rogue`: reads `clickstream` from its start repeatedly, and commits nothing.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition

ORDERS_PER_SECOND = 100
CUSTOMERS = 400
CLICKSTREAM_PARTITIONS = 2
CLICKSTREAM_BYTES = 240 * 2**20
BUNDLE_BYTES = 16 * 2**10
COLD_AGE_SECONDS = 86_400
ROGUE_BYTES_PER_SECOND = 40 * 2**20


def order(number: int, chance: random.Random) -> dict[str, Any]:
    """An order event. Harmless variations: `coupon` is optional, and `amount` is sometimes an integer."""
    amount = chance.randint(500, 9000) / 100
    event = {
        "order_id": f"o-{number:07d}",
        "customer": f"c-{chance.randrange(CUSTOMERS):04d}",
        "placed_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "status": chance.choice(("placed", "paid", "shipped", "returned")),
        "quantity": chance.randint(1, 9),
        "amount": round(amount) if chance.random() < 0.2 else amount,
        "address": {"city": chance.choice(("Berlin", "Hamburg", "Köln")), "postcode": f"{chance.randrange(99999):05d}"},
    }
    if chance.random() < 0.3:
        event["coupon"] = f"SAVE{chance.randint(5, 25)}"
    return event


def break_schema(event: dict[str, Any]) -> dict[str, Any]:
    """An event of the incompatible release: a number becomes text, and a required field is missing."""
    city_only = {"city": event["address"]["city"]}
    return {**event, "quantity": str(event["quantity"]), "address": city_only}


def produce_orders(servers: str) -> None:
    chance = random.Random(11)  # noqa: S311 — test data
    producer = Producer({"bootstrap.servers": servers, "client.id": "shop", "linger.ms": 50})
    deployed: list[Callable[[dict[str, Any]], dict[str, Any]]] = [dict]
    signal.signal(signal.SIGUSR1, lambda *_: deployed.__setitem__(0, break_schema))
    for number in paced(ORDERS_PER_SECOND):
        event = deployed[0](order(number, chance))
        producer.produce("orders", key=event["customer"], value=json.dumps(event, ensure_ascii=False))
        producer.poll(0)


def paced(per_second: int) -> Iterator[int]:
    """Yields increasing numbers at a constant rate, in batches of a tenth of a second."""
    started = time.monotonic()
    for number in itertools.count():
        if number % max(per_second // 10, 1) == 0:
            time.sleep(max(0.0, started + number / per_second - time.monotonic()))
        yield number


def consume_billing(servers: str) -> None:
    consume(servers, "billing", "orders", {})


def consume(servers: str, group: str, topic: str, settings: dict[str, Any]) -> None:
    """A group of one member that reads a topic from its beginning and commits every second."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "client.id": f"{group}-1",
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 1000,
            **settings,
        }
    )
    consumer.subscribe([topic])
    try:
        while True:
            for message in consumer.consume(num_messages=500, timeout=1):
                _check(message)
    finally:
        consumer.close()


def write_cold(servers: str) -> None:
    """Fills `clickstream` with yesterday's timestamps. Repeats a few bundles: without compression, contents do not
    matter."""
    chance = random.Random(12)  # noqa: S311 — test data
    click = [{"page": f"/p/{chance.randrange(10**6)}", "ms": chance.randrange(9000)} for _ in range(BUNDLE_BYTES // 36)]
    bundle = json.dumps({"session": "s-1", "clicks": click}).encode()
    producer = Producer({"bootstrap.servers": servers, "client.id": "web", "linger.ms": 5, "batch.size": 2**20})
    stamp = int((time.time() - COLD_AGE_SECONDS) * 1000)
    for number in range(CLICKSTREAM_BYTES // len(bundle)):
        produce_waiting(
            producer, "clickstream", bundle, partition=number % CLICKSTREAM_PARTITIONS, timestamp=stamp + number
        )
    if left := producer.flush(30):
        raise SystemExit(f"clickstream: {left} records were not taken within 30 s")


def produce_waiting(producer: Producer, topic: str, value: bytes, **record: Any) -> None:
    """Produces a record, and waits while the client's queue is full."""
    while True:
        try:
            producer.produce(topic, value, **record)
            producer.poll(0)
            return
        except BufferError:
            producer.poll(0.1)


def consume_rogue(servers: str, segments: Path) -> None:
    """Reads the whole cold topic at a limited rate. The client requires a group id, but commits nothing."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "clickstream-replay",
            "client.id": "clickstream-replay",
            "enable.auto.commit": False,
            "queued.max.messages.kbytes": 8192,
            "fetch.message.max.bytes": 2 * 2**20,
            "enable.partition.eof": True,
        }
    )
    started, read_bytes = time.monotonic(), 0
    while True:
        drop_pages(segments)
        consumer.assign(
            [TopicPartition("clickstream", part, OFFSET_BEGINNING) for part in range(CLICKSTREAM_PARTITIONS)]
        )
        unfinished = set(range(CLICKSTREAM_PARTITIONS))
        while unfinished:
            for message in consumer.consume(num_messages=64, timeout=1):
                if _check(message):
                    read_bytes += len(message.value() or b"")
                else:
                    unfinished.discard(message.partition())
            time.sleep(max(0.0, started + read_bytes / ROGUE_BYTES_PER_SECOND - time.monotonic()))


def drop_pages(segments: Path) -> None:
    """Evicts the log from the page cache, so that the next read goes to disk, as for a log larger than memory."""
    for segment in segments.glob("clickstream-*/*.log"):
        handle = os.open(segment, os.O_RDONLY)
        try:
            os.fsync(handle)  # dirty pages cannot be evicted
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)


def _check(message: Message) -> bool:
    """True for a record, False at the end of a partition; any error ends this client."""
    error = message.error()
    if error is None:
        return True
    if error.code() == KafkaError._PARTITION_EOF:
        return False
    raise SystemExit(f"{message.topic()}: {error.str()}")


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    role, servers, *rest = sys.argv[1:]
    if role == "rogue":
        consume_rogue(servers, Path(rest[0]))
    else:
        {"shop": produce_orders, "billing": consume_billing, "cold": write_cold}[role](servers)


if __name__ == "__main__":
    main()

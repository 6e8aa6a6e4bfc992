"""Clients of the fault `chain`, each in its own process: `python -m demo.chain_load past|shop|GROUP SERVERS`.

- `past`: writes records with timestamps of the minutes before the start of the fleet, and commits for all groups the
  offsets before these records.
- `shop`: sends orders and returns.
- `billing`, `search` read orders, `refunds` reads returns; all commit.
"""

from __future__ import annotations

import json
import random
import signal
import sys
import time
from datetime import timedelta

from confluent_kafka import Consumer, Producer, TopicPartition

from demo.load import ORDERS_PER_SECOND, consume, order, paced, produce_waiting

PAST = timedelta(minutes=15)
RETURNS_EVERY = 20  # orders
DOCUMENT_BYTES = 3000
# A small fetch size: a broker reads each response from its disk, which delays other requests.
LITTLE_AT_A_TIME = {"fetch.message.max.bytes": 2**16, "message.max.bytes": 2**16, "fetch.max.bytes": 2**17}
READERS = {"billing": "orders", "search": "orders", "refunds": "returns"}


def event(number: int, chance: random.Random) -> tuple[str, str, bytes]:
    """Topic, key, and value of an order with its document, or of a return."""
    topic = "orders" if number % RETURNS_EVERY else "returns"
    value = order(number, chance) | {"document": f"{number:x}".rjust(DOCUMENT_BYTES, "-")}
    return topic, value["customer"], json.dumps(value).encode()


def write_past(servers: str) -> None:
    producer = Producer({"bootstrap.servers": servers, "client.id": "past", "linger.ms": 5, "batch.size": 2**20})
    chance = random.Random(13)  # noqa: S311 — test data
    now, seconds = time.time(), PAST.total_seconds()
    for number in range(int(seconds) * ORDERS_PER_SECOND):
        topic, key, value = event(number, chance)
        at = now - seconds + number / ORDERS_PER_SECOND
        produce_waiting(producer, topic, value, key=key, timestamp=int(at * 1000))
    if left := producer.flush(60):
        raise SystemExit(f"{left} records of the past were not taken within 60 s")
    for group, topic in READERS.items():
        consumer = Consumer({"bootstrap.servers": servers, "group.id": group})
        partitions = consumer.list_topics(topic).topics[topic].partitions
        consumer.commit(offsets=[TopicPartition(topic, part, 0) for part in partitions], asynchronous=False)
        consumer.close()


def produce(servers: str) -> None:
    producer = Producer(
        {"bootstrap.servers": servers, "client.id": "shop", "linger.ms": 1000, "batch.size": 2**20, "acks": 1}
    )
    chance = random.Random(14)  # noqa: S311 — test data
    for number in paced(ORDERS_PER_SECOND):
        topic, key, value = event(number, chance)
        produce_waiting(producer, topic, value, key=key)


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    role, servers = sys.argv[1:]
    if role in READERS:
        consume(servers, role, READERS[role], LITTLE_AT_A_TIME)
    else:
        {"past": write_past, "shop": produce}[role](servers)


if __name__ == "__main__":
    main()

"""Clients of the faults of FAULTS=all, each in its own process: `python -m demo.more_load ROLE SERVERS`.

- `payments`: writes payments with timestamps of the last 50 minutes, and then continues to write.
- `ledger`: the fault `lag`: a group that reads payments more slowly than they arrive.
- `receipts`: the fault `refused`: a producer of records that are larger than max.message.bytes of the topic.
- `invoices`: the fault `poison`: writes invoices for a group of three members; processing one of them takes longer than
  max.poll.interval.ms.
- `parcels`: the fault `lost`: writes five minutes of parcels, of which a group reads ten and then leaves. It deletes
  the records before the 3,000th, as retention would, and continues to write.
- `analytics`: the fault `stranger`: a group that reads another application's changelog.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Thread

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from demo.load import consume, paced, produce_waiting

PER_SECOND = 20
PAST_SECONDS = 50 * 60
READ_PER_SECOND = 4
MEMBERS, POLL_INTERVAL_MS = 5, 6000
PARCELS_SECONDS, PARCELS_DELETED = 5 * 60, 3000


def write_payments(servers: str) -> None:
    producer = _producer(servers, "till")
    _write_past(producer, "payments", PAST_SECONDS)
    _write_on(producer, "payments")


def _producer(servers: str, client_id: str) -> Producer:
    return Producer({"bootstrap.servers": servers, "client.id": client_id, "linger.ms": 50})


def _write_past(producer: Producer, topic: str, seconds: int) -> None:
    """Writes records with timestamps of the last seconds."""
    now = time.time()
    for number in range(seconds * PER_SECOND):
        at = now - seconds + number / PER_SECOND
        produce_waiting(producer, topic, b'{"cents":%d}' % number, timestamp=int(at * 1000))
    producer.flush()


def _write_on(producer: Producer, topic: str) -> None:
    for number in paced(PER_SECOND):
        produce_waiting(producer, topic, b'{"cents":%d}' % number)


def read_too_slowly(servers: str) -> None:
    settings = {"group.id": "ledger", "client.id": "ledger-1", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": servers, "auto.commit.interval.ms": 1000, **settings})
    consumer.subscribe(["payments"])
    for _ in paced(READ_PER_SECOND):
        consumer.poll(1)


def send_what_is_refused(servers: str) -> None:
    one_by_one = {"batch.num.messages": 1, "linger.ms": 0, "max.in.flight": 1}
    producer = Producer({"bootstrap.servers": servers, "client.id": "receipts", **one_by_one})
    for _ in paced(10):
        produce_waiting(producer, "receipts", b"x" * 5000)


def write_invoices_of_which_one_is_poison(servers: str) -> None:
    for number in range(MEMBERS):
        Thread(target=_book, args=(servers, number), daemon=True).start()
    _write_on(_producer(servers, "invoicing"), "invoices")


def _book(servers: str, number: int) -> None:
    """A member that hangs on a record of the last partition; the assignor gives its owner no other partition."""
    settings = {"group.id": "bookkeeping", "client.id": f"bookkeeping-{number}", "auto.offset.reset": "earliest"}
    settings |= {"session.timeout.ms": 6000, "max.poll.interval.ms": POLL_INTERVAL_MS, "heartbeat.interval.ms": 500}
    # Commits only processed records.
    settings |= {"auto.commit.interval.ms": 1000, "enable.auto.offset.store": False}
    consumer = Consumer({"bootstrap.servers": servers, **settings})
    consumer.subscribe(["invoices"])
    while True:
        record = consumer.poll(0.2)
        if record is None or record.error():
            continue
        if (record.partition(), record.offset()) == (3, 3):
            time.sleep(POLL_INTERVAL_MS / 1000 + 1)
        with suppress(KafkaException):  # the group has removed the member
            consumer.store_offsets(record)


def write_parcels_that_are_lost(servers: str) -> None:
    producer = _producer(servers, "depot")
    _write_past(producer, "parcels", PARCELS_SECONDS)
    reader = Consumer({"bootstrap.servers": servers, "group.id": "archive", "client.id": "archive-1"})
    reader.commit(offsets=[TopicPartition("parcels", 0, 10)], asynchronous=False)
    reader.close()
    admin = AdminClient({"bootstrap.servers": servers})
    for deleted in admin.delete_records([TopicPartition("parcels", 0, PARCELS_DELETED)]).values():
        deleted.result()
    _write_on(producer, "parcels")


def read_a_changelog(servers: str) -> None:
    consume(servers, "analytics", "orders-customer-latest-changelog", {})


ROLES: dict[str, Callable[[str], None]] = {
    "payments": write_payments,
    "ledger": read_too_slowly,
    "receipts": send_what_is_refused,
    "invoices": write_invoices_of_which_one_is_poison,
    "parcels": write_parcels_that_are_lost,
    "analytics": read_a_changelog,
}


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    ROLES[sys.argv[1]](sys.argv[2])


if __name__ == "__main__":
    main()

"""Clients of the faults of FAULTS=all, each a process of its own: `python -m demo.more_load ROLE SERVERS`.

- `payments`: writes 50 minutes of payments, stamped as of then, and goes on writing.
- `ledger`: the fault `lag`: a group that reads payments more slowly than they come.
- `receipts`: the fault `refused`: a producer of records that are larger than the topic takes.
- `analytics`: the fault `stranger`: a group that reads another application's changelog.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable

from confluent_kafka import Consumer, Producer

from demo.load import consume, paced, produce_waiting

PAYMENTS_PER_SECOND = 20
PAST_SECONDS = 50 * 60
READ_PER_SECOND = 4


def write_payments(servers: str) -> None:
    producer = Producer({"bootstrap.servers": servers, "client.id": "till", "linger.ms": 50})
    now = time.time()
    for number in range(PAST_SECONDS * PAYMENTS_PER_SECOND):
        at = now - PAST_SECONDS + number / PAYMENTS_PER_SECOND
        produce_waiting(producer, "payments", b'{"cents":%d}' % number, timestamp=int(at * 1000))
    for number in paced(PAYMENTS_PER_SECOND):
        produce_waiting(producer, "payments", b'{"cents":%d}' % number)


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


def read_a_changelog(servers: str) -> None:
    consume(servers, "analytics", "orders-customer-latest-changelog", {})


ROLES: dict[str, Callable[[str], None]] = {
    "payments": write_payments,
    "ledger": read_too_slowly,
    "receipts": send_what_is_refused,
    "analytics": read_a_changelog,
}


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    ROLES[sys.argv[1]](sys.argv[2])


if __name__ == "__main__":
    main()

"""Producers that lose records, by their own metrics, and decoys. See `topics`."""

from __future__ import annotations

from tests.simulator.workloads.process_lifetimes import NOW, Life, Process, Producer

FAILING = "produce_failing"
TOPIC = "events"


def _shop(life: Life) -> list[Producer]:
    """An application of two processes, each of which writes a topic with two producers."""
    life.topic(TOPIC)
    life.group("billing", TOPIC)
    for number in range(2):
        records = life.uniform(20_000, 200_000)
        producers = [Producer(f"shop-{number}-{n}", TOPIC, records) for n in range(2)]
        life.processes.append(Process("shop", number, None, producers=producers))
    return [producer for process in life.processes for producer in process.producers]


def _loses(life: Life, producer: Producer, ratio: float) -> None:
    """Loses this share of all records of the application, from some hours ago on."""
    written = sum(one.records for process in life.processes for one in process.producers)
    producer.gives_up = [(0.0, 0.0), (life.onset(1.2, 20), ratio * written)]
    life.fault(FAILING, "dropped", names=TOPIC)


def gives_records_up(life: Life) -> None:
    """Brokers not reachable within delivery.timeout.ms, or records that are too large."""
    _loses(life, life.chance.choice(_shop(life)), life.uniform(0.003, 0.3))


def all_of_its_producers_give_records_up(life: Life) -> None:
    producers, begins = _shop(life), life.onset(1.2, 20)
    for producer in producers:
        producer.gives_up = [(0.0, 0.0), (begins, producer.records * life.uniform(0.003, 0.3))]
    life.fault(FAILING, "dropped", names=TOPIC)


def has_no_room_in_its_buffer(life: Life) -> None:
    """The producer includes those in its record errors."""
    producer = life.chance.choice(_shop(life))
    _loses(life, producer, life.uniform(0.003, 0.1))
    producer.has_no_room_for = producer.gives_up


def writes_all(life: Life) -> None:
    _shop(life)


def gave_up_some(life: Life) -> None:
    """An experiment: fewer than a hundred records in the hour."""
    life.chance.choice(_shop(life)).gives_up = [(0.0, 0.0), (NOW - 1.0, life.uniform(1, 90))]


def gave_up_one_of_thousands(life: Life) -> None:
    """More than a hundred records, of very many."""
    producers = _shop(life)
    for producer in producers:
        producer.records *= 20
    total = sum(producer.records for producer in producers)
    producers[0].gives_up = [(0.0, life.uniform(0.1, 0.8) * total / 1000)]


def gave_records_up_yesterday(life: Life) -> None:
    producer = life.chance.choice(_shop(life))
    began = NOW - life.uniform(3, 40)
    producer.gives_up = [(0.0, 0.0), (began, producer.records * 0.1), (began + 1.5, 0.0)]


FAULTS = (gives_records_up, all_of_its_producers_give_records_up, has_no_room_in_its_buffer)
DECOYS = (writes_all, gave_up_some, gave_up_one_of_thousands, gave_records_up_yesterday)

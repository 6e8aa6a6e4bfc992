"""Clients that brokers expose because of quotas: clients without a group, and decoys. See `topics`."""

from __future__ import annotations

from tests.simulator.workloads.process_lifetimes import MIB, Group, Life

UNKNOWN = "client_untracked"


def _counted(life: Life, **more: object) -> Group:
    """A topic read by a group, whose client the brokers expose."""
    life.topic("events")
    group = life.group("billing", "events", **more)
    life.clients[group.client] = life.uniform(1.5, 30) * MIB
    return group


def _reads(life: Life, client: str, rate: float) -> None:
    """A client in addition to all groups."""
    life.clients[client] = rate * MIB
    life.topics["events"].others_read = rate * MIB * 3600


def most_is_read_without_a_group(life: Life) -> None:
    _counted(life)
    _reads(life, "notebook", life.uniform(1.1, 60))
    life.fault(UNKNOWN, "high_share", client_id="notebook")


def some_is_read_without_a_group(life: Life) -> None:
    """A client next to store restores with ten times its rate."""
    _counted(life)
    _reads(life, "notebook", life.uniform(1.1, 5))
    life.application("joiner", "events")
    life.topics["joiner-totals-changelog"].others_read = life.clients["notebook"] * life.uniform(12, 20) * 3600
    life.fault(UNKNOWN, "untracked", client_id="notebook")


def everybody_reads_in_a_group(life: Life) -> None:
    _counted(life)


def looks_without_a_group(life: Life) -> None:
    _counted(life)
    _reads(life, "notebook", life.uniform(0.1, 0.9))


def has_stopped_to_read(life: Life) -> None:
    _counted(life)
    life.clients["notebook"] = 0.0


def restores_its_stores(life: Life) -> None:
    _counted(life)
    life.application("joiner", "events")
    client = life.groups["joiner"].client
    life.clients |= {client: 2.0 * MIB, client.replace("-consumer", "-restore-consumer"): life.uniform(5, 60) * MIB}
    life.topics["joiner-totals-changelog"].others_read = 30.0 * MIB * 3600


def streams_that_keep_checkpoints(life: Life) -> None:
    _counted(life)
    _reads(life, "consumer-spark-kafka-source-0b5d0a4e-7d1f-4f63-executor-1", life.uniform(2, 40))


def mirrored_to_another_cluster(life: Life) -> None:
    _counted(life)
    _reads(life, "MirrorSourceConnector-0|main->backup|replication-consumer", life.uniform(2, 40))


def job_that_commits_without_members(life: Life) -> None:
    group = _counted(life, members=0)
    life.clients = {f"{group.name}-{number}": life.uniform(1.5, 30) * MIB for number in range(3)}


FAULTS = (most_is_read_without_a_group, some_is_read_without_a_group)
DECOYS = (
    everybody_reads_in_a_group,
    looks_without_a_group,
    has_stopped_to_read,
    restores_its_stores,
    streams_that_keep_checkpoints,
    mirrored_to_another_cluster,
    job_that_commits_without_members,
)

"""A real broker with tiered storage: Kafka's own remote storage for tests, which is a folder."""

from __future__ import annotations

from pathlib import Path

from demo.broker import Broker
from demo.jar_set import JarSet, ensure
from demo.jars import KAFKA

STORAGE = JarSet(
    "kafka-storage-test",
    (f"org.apache.kafka:kafka-storage:{KAFKA}:test",),
    transitive=False,
    lock=Path(__file__).with_name("tiered_storage.lock"),
)


def tiered_broker(folder: Path) -> Broker:
    """A broker that is not started. It copies closed segments and deletes local ones every half second."""
    prefix = "remote.log.storage.manager"
    settings = {
        "remote.log.storage.system.enable": "true",
        f"{prefix}.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
        f"{prefix}.class.path": ":".join(str(path) for path in ensure(STORAGE)),
        f"{prefix}.impl.prefix": "rsm.config.",
        "rsm.config.dir": str(folder / "remote"),
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
        "remote.log.manager.task.interval.ms": "500",
        "log.retention.check.interval.ms": "500",
        "log.initial.task.delay.ms": "500",
    }
    return Broker(folder, settings=settings)


TIERED = {
    "remote.storage.enable": "true",
    "segment.bytes": str(1 << 20),
    "local.retention.bytes": "1",
    "retention.ms": "-1",
}
"""Settings of a topic whose closed segments are only in the remote storage."""

"""The fleet of FLEET=msk: two real brokers that an emulated Amazon MSK has, and a real application on EC2.

Streamwarden finds them by MSK's API: no broker is in the config. Open monitoring is on: a JMX exporter at port 11001 of
each broker's address. CloudWatch has the brokers' real traffic, and disk I/O of the first broker. The storage of the
second broker is emulated, and starves where the fault `ebs` is injected.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from demo.demo_world import DEMO_ACCOUNT, DEMO_REGION, EBS_FAULT_LEAD, ORDERS_INSTANCE_ID, demo_world
from demo.ebs_load import LoadModel, Surge
from demo.ebs_resources import FOREVER
from demo.exporter_fleet import HOSTS, ExporterFleet
from demo.feed import Feed, Sampler
from demo.fleet import APP, CLUSTER
from demo.msk_world import MskCluster
from demo.world import World

STARVED_BROKER = 2
VOLUME_GIB = 334
"""gp2: 1,002 IOPS; the rogue consumer needs less than that of the first broker's."""
SAMPLE_SECONDS = 2.0
TRAFFIC = ("BytesInPerSec", "BytesOutPerSec", "MessagesInPerSec")
"""Metrics of CloudWatch; the brokers' MBeans have the same names."""


class MskFleet(ExporterFleet):
    """The demo's application and clients on a cluster of Amazon MSK."""

    exporter_port = 11001  # of open monitoring: MSK's users cannot choose it

    def _world(self) -> World:
        world = demo_world(set(self.faults) - {"ebs"}, lambda: datetime.now(UTC))
        start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - EBS_FAULT_LEAD
        quiet = LoadModel(read_iops=0.4, write_iops=12, read_kib=128, write_kib=64, daily_swing=0.4, noise=0.3)
        starving = LoadModel(read_iops=0.4, write_iops=12, daily_swing=0.4, surges=(Surge(start, FOREVER, 0, 2400),))
        self.msk = MskCluster(
            DEMO_ACCOUNT, DEMO_REGION, CLUSTER, brokers=len(HOSTS), volume_gib=VOLUME_GIB, level="PER_BROKER",
            jmx_exporter=True, authentications=("none",),
        )  # fmt: skip
        world.msk.add(self.msk, {1: quiet, STARVED_BROKER: starving if "ebs" in self.faults else quiet})
        return world

    def _kafka_config(self) -> dict[str, Any]:
        entry = {"account": DEMO_ACCOUNT, "regions": [DEMO_REGION], "clusters": "*", "authentication": "none"}
        app = {"role": "app", "app": APP, "cluster": CLUSTER, "url": self.app.jolokia_url}
        return {"msk": [entry], "jmx": [{**app, "instance_id": ORDERS_INSTANCE_ID}]}

    def _start_kafka(self, ports: Mapping[str, int]) -> None:
        super()._start_kafka(ports)
        self.msk.hosts |= {one.node_id: one.bootstrap_servers for one in self.cluster.brokers}
        self._parts.enter_context(Feed(self.world.msk.inner, {self.msk.volume_id(1): self.broker.pid}, {}))
        self._parts.enter_context(Traffic(self.msk, {one.node_id: one.jolokia_url for one in self.cluster.brokers}))

    def _feed(self) -> Feed:
        return Feed(self.world, {}, {ORDERS_INSTANCE_ID: self.app.pid})

    def _record_initial_faults(self) -> None:
        faults, self.faults = self.faults, self.faults - {"ebs"}
        super()._record_initial_faults()
        self.faults = faults
        if "ebs" in faults:
            why = f"{VOLUME_GIB} GiB of storage (1,002 IOPS baseline) with a demand of 2,400 IOPS: no I/O credits left"
            resource = f"msk-{CLUSTER}-b-{STARVED_BROKER}-data"
            self.injected("ebs", "ebs_volume_starving", resource, why, ("bucket_empty",), self.hour - EBS_FAULT_LEAD)


class Traffic(Sampler):
    """Sets the brokers' traffic in CloudWatch, minute by minute, to what their JVMs count."""

    def __init__(self, cluster: MskCluster, agents: Mapping[int, str]) -> None:
        """`agents`: URL of the Jolokia agent by broker."""
        super().__init__("msk-traffic")
        self._cluster, self._agents = cluster, agents

    def run(self) -> None:
        before: dict[tuple[int, str], tuple[datetime, float]] = {}
        while not self._stopping.wait(SAMPLE_SECONDS):
            now = datetime.now(UTC)
            minute = now.replace(second=0, microsecond=0)
            for broker_id, url in self._agents.items():
                for name, count in _counts(url).items():
                    at, was = before.setdefault((broker_id, name), (now, count))
                    if now - at >= timedelta(seconds=10):
                        rate = (count - was) / (now - at).total_seconds()
                        self._cluster.set(name, broker_id, minute, minute + timedelta(minutes=1), rate)
                        before[broker_id, name] = now, count


def _counts(url: str) -> dict[str, float]:
    """Totals of a broker; none while it does not respond, which the fleet reports."""
    asked = [
        {"type": "read", "mbean": f"kafka.server:type=BrokerTopicMetrics,name={name}", "attribute": "Count"}
        for name in TRAFFIC
    ]
    try:
        answers = httpx.post(url, json=asked, timeout=5).json()
    except (httpx.HTTPError, ValueError):
        return {}
    return {
        name: float(answer["value"]) for name, answer in zip(TRAFFIC, answers, strict=True) if answer["status"] == 200
    }

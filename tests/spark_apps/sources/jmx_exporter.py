"""Prometheus' JMX exporter as a Java agent, for tests against real JVMs.

Run as a module, this file locks the jar (URL and hash) again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from demo.jar_set import JarSet, ensure, write_locks
from demo.process import free_port

AGENT = JarSet(
    "jmx-exporter",
    ("io.prometheus.jmx:jmx_prometheus_javaagent:1.0.1",),
    transitive=False,
    lock=Path(__file__).with_name("jars.lock"),
)
WITHOUT_RULES = "{}"
# Rules of the exporter's examples for Kafka brokers, as far as they matter here.
KAFKA_RULES = r"""
lowercaseOutputName: true
rules:
  - pattern: 'kafka.(\w+)<type=(.+), name=(.+)PerSec\w*, (.+)=(.+)><>Count'
    name: kafka_$1_$2_$3_total
    type: COUNTER
    labels: {"$4": "$5"}
  - pattern: 'kafka.(\w+)<type=(.+), name=(.+)PerSec\w*><>Count'
    name: kafka_$1_$2_$3_total
    type: COUNTER
  - pattern: 'kafka.server<type=(.+), client-id=(.+)><>([a-z-]+)'
    name: kafka_server_quota_$3
    labels: {resource: "$1", clientId: "$2"}
  - pattern: 'kafka.(\w+)<type=(.+), name=(.+), (.+)=(.+), (.+)=(.+)><>Value'
    name: kafka_$1_$2_$3
    labels: {"$4": "$5", "$6": "$7"}
  - pattern: 'kafka.(\w+)<type=(.+), name=(.+), (.+)=(.+)><>Value'
    name: kafka_$1_$2_$3
    labels: {"$4": "$5"}
  - pattern: 'kafka.(\w+)<type=(.+), name=(.+)><>Value'
    name: kafka_$1_$2_$3
  - pattern: 'kafka.(\w+)<type=(.+), name=(.+), (.+)=(.+)><>Count'
    name: kafka_$1_$2_$3_count
    labels: {"$4": "$5"}
  - pattern: 'kafka.(\w+)<type=(.+), name=(.+), (.+)=(.*)><>(\d+)thPercentile'
    name: kafka_$1_$2_$3
    labels: {"$4": "$5", quantile: "0.$6"}
  - pattern: 'kafka.(\w+)<type=(.+), name=(.+)><>Count'
    name: kafka_$1_$2_$3_count
  - pattern: 'kafka.(\w+)<type=(.+), name=(.+)><>(\d+)thPercentile'
    name: kafka_$1_$2_$3
    labels: {quantile: "0.$4"}
"""


@contextmanager
def in_jvms_started_here(folder: Path, config: str) -> Iterator[str]:
    """JVMs started within the block run the exporter; yields the URL of its page."""
    file, port = folder / "exporter.yaml", free_port()
    file.write_text(config)
    before = dict(os.environ)
    os.environ["JAVA_TOOL_OPTIONS"] = f"-javaagent:{ensure(AGENT)[0]}=127.0.0.1:{port}:{file}"
    try:
        yield f"http://127.0.0.1:{port}/metrics"
    finally:
        os.environ.pop("JAVA_TOOL_OPTIONS")
        os.environ.update(before)


if __name__ == "__main__":
    write_locks(AGENT)

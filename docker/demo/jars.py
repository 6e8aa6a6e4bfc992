"""The jars of the demo fleet: of the broker, the Streams application, and the Jolokia agent, with their versions.

`python -m demo.jars` fetches them and shows progress; `--lock` resolves again and rewrites the lock file.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from rich.console import Console
from streamwarden.base.errors import StreamwardenError

from demo.jar_set import JarSet, ensure, write_locks

KAFKA = "4.3.1"
LOGGING = "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4"
LOCK = Path(__file__).with_name("jars.lock")

BROKER = JarSet("broker", (f"org.apache.kafka:kafka_2.13:{KAFKA}", LOGGING), transitive=True, lock=LOCK)
STREAMS = JarSet("streams", (f"org.apache.kafka:kafka-streams:{KAFKA}", LOGGING), transitive=True, lock=LOCK)
JOLOKIA = JarSet("jolokia", ("org.jolokia:jolokia-agent-jvm:2.6.0:javaagent",), transitive=False, lock=LOCK)
DISK = JarSet("disk", ("net.bytebuddy:byte-buddy:1.17.8",), transitive=False, lock=LOCK)
"""Library of the agent that delays disk requests of a broker; fetched only for FAULTS=chain."""
EXPORTER = JarSet("jmx-exporter", ("io.prometheus.jmx:jmx_prometheus_javaagent:1.0.1",), transitive=False, lock=LOCK)
"""Prometheus' JMX exporter: of the fleets of FLEET=msk and FLEET=kubernetes; fetched only for them."""
TOOLS = JarSet("tools", (f"org.apache.kafka:kafka-tools:{KAFKA}", LOGGING), transitive=True, lock=LOCK)
"""Kafka's command-line tools that are not in the broker's jars; for tests that run the commands of tickets."""
JDBC = JarSet("jdbc", ("org.postgresql:postgresql:42.7.14",), transitive=False, lock=LOCK)
"""PostgreSQL's driver; for the test of the Spark example in docs/analyst.md."""
ALWAYS = (BROKER, STREAMS, JOLOKIA)
ALL = (*ALWAYS, DISK, EXPORTER, TOOLS, JDBC)


def ensure_all(say: Callable[[str], None]) -> None:
    """Fetches the missing jars that every demo needs, in parallel, because resolving mostly waits for the network."""
    with ThreadPoolExecutor(len(ALWAYS)) as pool:
        started = time.monotonic()
        there = {jars.name for jars in ALWAYS if jars.folder.exists()}
        running = {pool.submit(ensure, jars): jars for jars in ALWAYS}
        for done in as_completed(running):
            found = done.result()
            if running[done].name in there:
                continue  # nothing was fetched
            size_mib = sum(path.stat().st_size for path in found) / 2**20
            took = time.monotonic() - started
            say(f"jars {running[done].name}: {len(found)} files, {size_mib:.0f} MiB, {took:.1f} s")


def classpath(jars: JarSet) -> str:
    """The set as an argument of `java -cp`."""
    return ":".join(str(path) for path in ensure(jars))


def main() -> int:
    console = Console()
    try:
        if "--lock" in sys.argv[1:]:
            write_locks(*ALL)
        with console.status("fetching jars from Maven Central…"):
            ensure_all(console.print)
    except StreamwardenError as error:
        console.print(f"[red]{error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

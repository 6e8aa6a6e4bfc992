"""`streamwarden plan`: the commands that resolve a finding. They are printed, never run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from streamwarden.base.errors import StreamwardenError
from streamwarden.cli import shared
from streamwarden.detectors.bootstrap import BootstrapServers
from streamwarden.rendering.readable import counted, readable
from streamwarden.store.queries import Row, ask

if TYPE_CHECKING:
    import sqlalchemy as sa

    from streamwarden.plans.rebalance import Move
    from streamwarden.plans.replicas import Placed, Placement

app = typer.Typer(help="Print plans as commands to paste. No command is run.", no_args_is_help=True)
_ABANDONED = ("abandoned", "large")
_LEAST_THROTTLE = 1024 * 1024  # bytes/s: below it a reassignment cannot catch up with the writes
_BARRED = {
    "silent": "did not respond over JMX",
    "parked": "is parked",
    "filling": "has a disk that is filling up",
}


@app.command()
def removal(
    application: Annotated[
        str, typer.Argument(metavar="APPLICATION", help="Kafka Streams application.id, or name of the Samza job.")
    ],
    cluster: Annotated[
        str | None, typer.Option(help="Needed if several clusters have an application of that id.")
    ] = None,
    park: Annotated[
        bool,
        typer.Option("--park", help="Where topics cannot be deleted: keep one replica of each on parked brokers."),
    ] = False,
) -> None:
    """Print the commands that remove the internal topics of an abandoned application."""
    config = shared.config_if_any()
    with shared.warehouse().connect() as connection:
        topics = ask(connection, "plans/removal", application_id=application, cluster=cluster)
        if cluster and not topics:
            shared.require_cluster(connection, cluster, "--cluster")
        brokers = ask(connection, "plans/rebalance_brokers", cluster=topics[0]["cluster"]) if park and topics else []
        bootstrap = BootstrapServers.of(connection, config)
    clusters = sorted({row["cluster"] for row in topics})
    if not topics:
        raise StreamwardenError(f"{application}: has no internal topics in the newest evaluated hour.")
    if len(clusters) > 1:
        raise StreamwardenError(
            f"{application}: exists in clusters {', '.join(clusters)}; choose one: --cluster {clusters[0]}."
        )
    if topics[0]["reason"] not in _ABANDONED:
        raise StreamwardenError(f"{application}: is not abandoned: {topics[0]['message'] or 'it was not evaluated.'}")
    parked = [one["broker_id"] for one in brokers if one["barred_because"] == "parked"]
    if park and not parked:
        raise StreamwardenError(
            f"{clusters[0]}: no parked broker responded over JMX; they are set in parked_brokers of"
            " topic_on_parked_broker."
        )
    print("\n".join(removal_plan(application, clusters[0], topics, bootstrap.servers(clusters[0]), parked)))


def removal_plan(
    application: str, cluster: str, topics: list[Row], servers: str, parked: Sequence[int] = ()
) -> list[str]:
    """Shell lines that remove an application's internal topics.

    Args:
        topics: rows of `plans/removal`.
        parked: brokers that keep one replica of each partition; none: the topics are deleted.
    """
    known = sum(row["log_bytes"] for row in topics if row["log_bytes"] is not None)
    partitions = sum(row["partitions"] for row in topics)
    names = [row["topic"] for row in topics]
    lines = [
        f"# {application} on {cluster}: {counted(len(topics), 'topic')}, {counted(partitions, 'partition')},"
        f" {readable('log_bytes', known)[1]} in all replicas.",
        f"# {topics[0]['message']}",
        "# 1. Confirm with its owner that it is gone. Then expire the records; they cannot be restored.",
    ]
    lines += [
        f"kafka-configs.sh --bootstrap-server {servers} --alter --entity-type topics --entity-name {shlex.quote(name)}"
        " --add-config cleanup.policy=delete,retention.ms=60000"
        for name in names
    ]
    lines += [
        "# 2. Wait until the segments are deleted: brokers check every 5 minutes (log.retention.check.interval.ms).",
        f"kafka-log-dirs.sh --bootstrap-server {servers} --describe --topic-list {shlex.quote(','.join(names))}",
        *(_parked(topics, parked, servers) if parked else _deleted(names, servers)),
    ]
    if any(row["kind"] in ("coordinator", "checkpoint") for row in topics):
        return lines  # a Samza job has no consumer group
    group = shlex.quote(application)
    return [
        *lines,
        "# 4. Delete the consumer group.",
        f"kafka-consumer-groups.sh --bootstrap-server {servers} --delete --group {group}",
    ]


def _deleted(names: Sequence[str], servers: str) -> list[str]:
    delete = f"kafka-topics.sh --bootstrap-server {servers} --delete --topic"
    return ["# 3. Delete the topics.", *(f"{delete} {shlex.quote(name)}" for name in names)]


def _parked(topics: list[Row], brokers: Sequence[int], servers: str) -> list[str]:
    """Moves one replica of each partition to the parked brokers, round-robin. The topics are empty: no throttle."""
    names = [(row["topic"], partition) for row in topics for partition in range(row["partitions"])]
    places = [
        {"topic": topic, "partition": partition, "replicas": [brokers[turn % len(brokers)]]}
        for turn, (topic, partition) in enumerate(names)
    ]
    on = ", ".join(map(str, brokers))
    return [
        f"# 3. Keep one replica of each partition on parked broker{'s' if len(brokers) > 1 else ''} {on}.",
        *_file("park.json", places),
        f"{_tool(servers, 'park.json')} --execute",
        f"{_tool(servers, 'park.json')} --verify",
    ]


ThrottleMb = Annotated[
    float | None,
    typer.Option(
        min=0.1, help="Replication throttle in MB/s (10⁶ bytes); default: the spare bandwidth of disks and network."
    ),
]


def _held(connection: sa.Connection, cluster: str) -> tuple[list[Row], list[Row]]:
    """Rows of `plans/rebalance_brokers` and `plans/rebalance_partitions` of a cluster, in its newest hour."""
    brokers = ask(connection, "plans/rebalance_brokers", cluster=cluster)
    if not brokers:
        shared.require_cluster(connection, cluster)
        raise StreamwardenError(f"{cluster}: has no brokers in the newest gathered hour.")
    return brokers, ask(connection, "plans/rebalance_partitions", cluster=cluster, hour=brokers[0]["hour"])


@app.command()
def rebalance(
    cluster: Annotated[str, typer.Argument(metavar="CLUSTER", help="Kafka cluster.")],
    moves: Annotated[int, typer.Option(min=1, help="Maximum number of replicas to copy.")] = 20,
    throttle_mb: ThrottleMb = None,
) -> None:
    """Print the commands that balance the load of a cluster's brokers, one partition at a time."""
    from streamwarden.plans.rebalance import Balance, plan

    config = shared.config_if_any()
    with shared.warehouse().connect() as connection:
        brokers, partitions = _held(connection, cluster)
        servers = BootstrapServers.of(connection, config).servers(cluster)
    if not partitions:
        raise StreamwardenError(f"{cluster}: has no partitions in the hour {brokers[0]['hour']:%FT%H:%M} UTC.")
    balance = Balance.of(brokers, partitions)
    before = balance.spreads()
    planned = plan(balance, most=moves)
    throttle = None if throttle_mb is None else throttle_mb * 1e6
    print("\n".join(rebalance_plan(cluster, brokers, before, planned, servers, throttle)))


def rebalance_plan(
    cluster: str, brokers: list[Row], before: dict[str, float], moves: list[Move], servers: str, throttle: float | None
) -> list[str]:
    """Shell lines that rebalance a cluster.

    Args:
        brokers: rows of `plans/rebalance_brokers`.
        before: coefficient of variation by load, before the moves.
        throttle: bytes/s; None: the spare bandwidth of the brokers of each move.
    """
    by_id = {one["broker_id"]: one for one in brokers}
    lines = [
        f"# {cluster}, {counted(len(brokers), 'broker')}: standard deviation / mean of {_spreads(before)}.",
        *(
            f"# Broker {one['broker_id']} {_BARRED[one['barred_because']]}: no partition is moved to it."
            for one in brokers if one["barred_because"]
        ),
    ]  # fmt: skip
    if not moves:
        return [*lines, "# No move improves the balance enough to be worth its cost."]
    copied = readable("copied_bytes", sum(move.copied_bytes for move in moves))[1]
    lines += [
        f"# After {counted(len(moves), 'move')} ({copied}): {_spreads(moves[-1].spreads)}.",
        *_rackless(brokers),
        "# First elect the preferred leaders, and print this plan again an hour later: this may be sufficient.",
        f"{_election(servers)} --all-topic-partitions",
    ]
    # Consecutive moves that copy no data are one step.
    steps = [list(step) for _, step in groupby(moves, key=lambda move: move if move.copied_bytes else None)]
    for number, step in enumerate(steps, 1):
        file = f"move-{number:02}.json"
        lines += _copy(file, step[0], by_id, servers, throttle) if step[0].copied_bytes else _lead(file, step, servers)
    return lines


@app.command()
def replicas(
    cluster: Annotated[str, typer.Argument(metavar="CLUSTER", help="Kafka cluster.")],
    throttle_mb: ThrottleMb = None,
) -> None:
    """Print the commands that add missing replicas and move those on parked brokers or in a single rack."""
    from streamwarden.plans.replicas import place

    config = shared.config_if_any()
    with shared.warehouse().connect() as connection:
        evaluated = ask(connection, "plans/replicas", cluster=cluster)
        if not evaluated:
            shared.require_cluster(connection, cluster)
            raise StreamwardenError(f"{cluster}: the replication of its topics was not evaluated.")
        topics = [row for row in evaluated if row["topic"]]
        if not topics:
            raise StreamwardenError(f"{cluster}: no topic needs other replicas, as of the newest evaluated hour.")
        brokers, partitions = _held(connection, cluster)
        servers = BootstrapServers.of(connection, config).servers(cluster)
    placed = place(brokers, topics, partitions)
    throttle = None if throttle_mb is None else throttle_mb * 1e6
    lines = replicas_plan(cluster, brokers, topics, placed, servers, throttle)
    print("\n".join(lines))


def replicas_plan(
    cluster: str, brokers: list[Row], topics: list[Row], placed: list[Placed], servers: str, throttle: float | None
) -> list[str]:
    """Shell lines that place replicas; one reassignment file for each topic. Arguments as of `rebalance_plan`."""
    by_id = {one["broker_id"]: one for one in brokers}
    lines = [f"# {cluster}: {counted(len(placed), 'topic')}, one after the other.", *_rackless(brokers)]
    counts = {row["weakness"]: (row["shown_topics"], row["topics"]) for row in topics}
    lines += [
        f"# Covers the {shown} largest of {counted(total, 'topic')} ({weakness}): print the plan again afterwards."
        for weakness, (shown, total) in counts.items()
        if total is not None and total > shown
    ]
    for number, one in enumerate(placed, 1):
        lines += _add(f"replicas-{number:02}.json", one, by_id, servers, throttle)
    return lines


def _add(file: str, one: Placed, brokers: dict[int, Row], servers: str, throttle: float | None) -> list[str]:
    """Lines of a topic: number and size of the new replicas, what is left out, the file, execute, and verify."""
    added = sum(len(placement.added) for placement in one.placements)
    copied = readable("copied_bytes", sum(placement.copied_bytes for placement in one.placements))[1]
    head = f"# {one.topic} ({one.weakness}): {counted(added, 'replica')} to copy, {copied}."
    if one.moving:
        head += f" Left out: {counted(one.moving, 'partition')}, under-replicated or being reassigned."
    if one.unplaceable:
        head += (
            f" No broker can take a replica of {counted(one.unplaceable, 'partition')}: too few brokers or racks, or"
            " not enough disk space."
        )
    if not one.placements:
        return [head]
    targets = {broker for placement in one.placements for broker in placement.added}
    pace, why_not, unknown = _pace({placement.leader for placement in one.placements}, targets, brokers, throttle)
    if pace is None:
        return [f"{head} {why_not}"]
    return [
        f"{head} Throttle: {readable('bytes_per_second', pace)[1]} per broker.{unknown}",
        *_written(file, one.placements),
        f"{_tool(servers, file)} --throttle {int(pace)} --execute",
        f"{_tool(servers, file)} --verify  # repeat until it is complete: only this removes the throttle",
    ]


def _lead(file: str, moves: list[Move], servers: str) -> list[str]:
    """Lines of leadership changes: a file with the new replica order, and a preferred leader election."""
    names = [f"{move.topic}-{move.partition}" for move in moves]
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    elected = json.dumps({"partitions": [{"topic": one.topic, "partition": one.partition} for one in moves]})
    return [
        f"# New leaders for {shown}: no data is copied.",
        *_written(file, moves),
        f"{_tool(servers, file)} --execute",
        f"cat > elect-{file} <<'JSON'", elected, "JSON",
        f"{_election(servers)} --path-to-json-file elect-{file}",
    ]  # fmt: skip


def _copy(file: str, move: Move, brokers: dict[int, Row], servers: str, throttle: float | None) -> list[str]:
    """Lines of one moved replica: size and duration, the file, execute, verify, and when to continue."""
    both = brokers[move.source], brokers[move.target]
    # A new replica fetches from the leader. If the moved replica leads, that is its broker.
    leader = move.source if move.replicas[0] == move.target else move.replicas[0]
    pace, why_not, unknown = _pace([leader], [move.target], brokers, throttle)
    size = readable("copied_bytes", move.copied_bytes)[1]
    head = f"# {move.topic}-{move.partition}: broker {move.source} -> {move.target}, {size}"
    if pace is None:
        return [f"{head}. {why_not}"]
    minutes = max(1, round(move.copied_bytes / pace / 60))
    before = "; ".join(
        f"broker {one['broker_id']} {_rate(one, 'bytes_in_per_second')} in, {_rate(one, 'bytes_out_per_second')} out"
        for one in both
    )
    return [
        f"{head}, about {minutes} min at {readable('bytes_per_second', pace)[1]}.{unknown}",
        *_written(file, [move]),
        f"{_tool(servers, file)} --throttle {int(pace)} --execute",
        f"{_tool(servers, file)} --verify  # repeat until it is complete: only this removes the throttle",
        f"# Continue when their traffic is within 10 % of that before the move: {before}.",
    ]


def _pace(
    sources: Iterable[int], targets: Iterable[int], brokers: dict[int, Row], throttle: float | None
) -> tuple[float | None, str, str]:
    """The throttle in bytes/s, or None and the reason; and a sentence about what is unknown.

    The spare disk bandwidth of all brokers must be known; the network is taken into account where it is known.
    """
    if throttle is not None:
        return throttle, "", ""
    sending, receiving = ([brokers.get(broker, {}) for broker in some] for some in (sources, targets))
    disks = [one.get("spare_disk_bytes_per_second") for one in (*sending, *receiving)]
    network = [one.get("spare_out_bytes_per_second") for one in sending]
    network += [one.get("spare_in_bytes_per_second") for one in receiving]
    if None in disks:
        return None, "The spare bandwidth of their disks is unknown: set the throttle with --throttle-mb.", ""
    for what, spare in (("disks", disks), ("network", network)):
        if min((one for one in spare if one is not None), default=_LEAST_THROTTLE) < _LEAST_THROTTLE:
            return None, f"Not now: more than 70 % of the bandwidth of their {what} is in use.", ""
    unknown = (
        " Their spare network bandwidth is unknown: the throttle considers only the disks." if None in network else ""
    )
    return min(one for one in (*disks, *network) if one is not None), "", unknown


def _rackless(brokers: Sequence[Row]) -> list[str]:
    """A warning if brokers have no rack."""
    rackless = [str(one["broker_id"]) for one in brokers if one["rack"] is None]
    if not rackless:
        return []
    if len(rackless) == len(brokers):
        return ["# No broker has a rack (broker.rack): replicas of a partition may share an availability zone."]
    return [f"# Rack unknown for broker {', '.join(rackless)}: replicas of a partition may share an availability zone."]


def _written(file: str, moves: Sequence[Move | Placement]) -> list[str]:
    return _file(
        file, [{"topic": one.topic, "partition": one.partition, "replicas": list(one.replicas)} for one in moves]
    )


def _file(name: str, places: list[dict[str, object]]) -> list[str]:
    """Lines that write a file for kafka-reassign-partitions.sh."""
    return [f"cat > {name} <<'JSON'", json.dumps({"version": 1, "partitions": places}), "JSON"]


def _tool(servers: str, file: str) -> str:
    return f"kafka-reassign-partitions.sh --bootstrap-server {servers} --reassignment-json-file {file}"


def _election(servers: str) -> str:
    return f"kafka-leader-election.sh --bootstrap-server {servers} --election-type preferred"


def _rate(broker: Row, column: str) -> str:
    return readable("bytes_per_second", broker[column])[1]


def _spreads(spreads: dict[str, float]) -> str:
    return ", ".join(f"{load} {spread:.0%}".replace("%", " %") for load, spread in spreads.items())

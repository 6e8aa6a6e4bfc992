"""`streamwarden plan`: what to do about a finding, as commands to paste. It prints them and never runs them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.cli import shared
from streamwarden.rendering.readable import counted, readable
from streamwarden.store.queries import Row, ask

if TYPE_CHECKING:
    import sqlalchemy as sa

    from streamwarden.plans.rebalance import Move
    from streamwarden.plans.replicas import Placed, Placement

app = typer.Typer(help="Print plans, as commands to paste. None is ever run.", no_args_is_help=True)
_ABANDONED = ("abandoned", "large")
_LEAST_THROTTLE = 1024 * 1024  # bytes/s: what is slower never ends
_BARRED = {"silent": "didn't answer over JMX", "parked": "is parked", "filling": "has a disk that fills up"}


@app.command()
def removal(
    application: Annotated[
        str, typer.Argument(metavar="APPLICATION", help="Its Kafka Streams application id, or the Samza job.")
    ],
    cluster: Annotated[str | None, typer.Option(help="Where several clusters have one of that id.")] = None,
    park: Annotated[
        bool,
        typer.Option("--park", help="Where topics can't be deleted: with one replica onto parked brokers instead."),
    ] = False,
) -> None:
    """Print how to remove the internal topics of an application that is gone."""
    config = shared.config_if_any()
    with shared.warehouse().connect() as connection:
        topics = ask(connection, "plans/removal", application_id=application, cluster=cluster)
        brokers = ask(connection, "plans/rebalance_brokers", cluster=topics[0]["cluster"]) if park and topics else []
    clusters = sorted({row["cluster"] for row in topics})
    if not topics:
        raise StreamwardenError(f"{application}: no internal topic of it was there in the newest hour judged.")
    if len(clusters) > 1:
        raise StreamwardenError(f"{application}: is in {', '.join(clusters)}; say which: --cluster {clusters[0]}.")
    if topics[0]["reason"] not in _ABANDONED:
        raise StreamwardenError(
            f"{application}: isn't abandoned: {topics[0]['message'] or 'nothing was judged of it.'}"
        )
    parked = [one["broker_id"] for one in brokers if one["barred_because"] == "parked"]
    if park and not parked:
        raise StreamwardenError(
            f"{clusters[0]}: no parked broker of it answers; parked_brokers of topic_on_parked_broker says which are."
        )
    print("\n".join(removal_plan(application, clusters[0], topics, config, parked)))


def removal_plan(
    application: str, cluster: str, topics: list[Row], config: Config, parked: Sequence[int] = ()
) -> list[str]:
    """The lines: comments, and commands for a shell. `parked`: brokers that get the topics, which then stay."""
    known = sum(row["log_bytes"] for row in topics if row["log_bytes"] is not None)
    servers = config.bootstrap_servers(cluster)
    partitions = sum(row["partitions"] for row in topics)
    names = [row["topic"] for row in topics]
    lines = [
        f"# {application} on {cluster}: {counted(len(topics), 'topic')}, {counted(partitions, 'partition')},"
        f" {readable('log_bytes', known)[1]} in all replicas.",
        f"# {topics[0]['message']}",
        "# 1. Ask its owner. Then let the records expire: until here all can be undone.",
    ]
    lines += [
        f"kafka-configs.sh --bootstrap-server {servers} --alter --entity-type topics --entity-name {shlex.quote(name)}"
        " --add-config cleanup.policy=delete,retention.ms=60000"
        for name in names
    ]
    lines += [
        "# 2. Wait until the files are gone: brokers look every 5 minutes (log.retention.check.interval.ms).",
        f"kafka-log-dirs.sh --bootstrap-server {servers} --describe --topic-list {shlex.quote(','.join(names))}",
        *(_parked(topics, parked, servers) if parked else _deleted(names, servers)),
    ]
    if any(row["kind"] in ("coordinator", "checkpoint") for row in topics):
        return lines  # a Samza job has no group
    group = shlex.quote(application)
    return [
        *lines,
        "# 4. Delete the group.",
        f"kafka-consumer-groups.sh --bootstrap-server {servers} --delete --group {group}",
    ]


def _deleted(names: Sequence[str], servers: str) -> list[str]:
    delete = f"kafka-topics.sh --bootstrap-server {servers} --delete --topic"
    return ["# 3. Delete the topics.", *(f"{delete} {shlex.quote(name)}" for name in names)]


def _parked(topics: list[Row], brokers: Sequence[int], servers: str) -> list[str]:
    """One replica of each partition, by turns on parked brokers. Without records there is nothing to throttle."""
    names = [(row["topic"], partition) for row in topics for partition in range(row["partitions"])]
    places = [
        {"topic": topic, "partition": partition, "replicas": [brokers[turn % len(brokers)]]}
        for turn, (topic, partition) in enumerate(names)
    ]
    on = ", ".join(map(str, brokers))
    return [
        f"# 3. Keep one replica, on the parked broker{'s' if len(brokers) > 1 else ''} {on}.",
        *_file("park.json", places),
        f"{_tool(servers, 'park.json')} --execute",
        f"{_tool(servers, 'park.json')} --verify",
    ]


ThrottleMb = Annotated[
    float | None,
    typer.Option(min=0.1, help="Megabytes (10⁶ bytes) a second to copy with; else what disks and network have left."),
]


def _held(connection: sa.Connection, cluster: str) -> tuple[list[Row], list[Row]]:
    """The brokers of a cluster, and the partitions that they hold, in its newest hour."""
    brokers = ask(connection, "plans/rebalance_brokers", cluster=cluster)
    if not brokers:
        raise StreamwardenError(f"{cluster}: no broker of it was gathered in the newest hour.")
    return brokers, ask(connection, "plans/rebalance_partitions", cluster=cluster, hour=brokers[0]["hour"])


@app.command()
def rebalance(
    cluster: Annotated[str, typer.Argument(metavar="CLUSTER", help="Kafka cluster.")],
    moves: Annotated[int, typer.Option(min=1, help="At most so many replicas to copy.")] = 20,
    throttle_mb: ThrottleMb = None,
) -> None:
    """Print which partitions to move, one at a time, so that the brokers of a cluster do equal work."""
    from streamwarden.plans.rebalance import Balance, plan

    config = shared.config_if_any()
    with shared.warehouse().connect() as connection:
        brokers, partitions = _held(connection, cluster)
    if not partitions:
        raise StreamwardenError(
            f"{cluster}: no partition of it was gathered in the hour of {brokers[0]['hour']:%F %H:%M} UTC."
        )
    balance = Balance.of(brokers, partitions)
    before = balance.spreads()
    planned = plan(balance, most=moves)
    throttle = None if throttle_mb is None else throttle_mb * 1e6
    print("\n".join(rebalance_plan(cluster, brokers, before, planned, config.bootstrap_servers(cluster), throttle)))


def rebalance_plan(
    cluster: str, brokers: list[Row], before: dict[str, float], moves: list[Move], servers: str, throttle: float | None
) -> list[str]:
    """The lines: comments, and commands for a shell. `throttle`: bytes a second; None: by what is left."""
    by_id = {one["broker_id"]: one for one in brokers}
    lines = [
        f"# {cluster}, {counted(len(brokers), 'broker')}: standard deviation / mean of {_spreads(before)}.",
        *(
            f"# Broker {one['broker_id']} {_BARRED[one['barred_because']]}: it gets nothing."
            for one in brokers if one["barred_because"]
        ),
    ]  # fmt: skip
    if not moves:
        return [*lines, "# No move makes it more even by enough to be worth it."]
    copied = readable("copied_bytes", sum(move.copied_bytes for move in moves))[1]
    lines += [
        f"# After {counted(len(moves), 'move')} ({copied}): {_spreads(moves[-1].spreads)}.",
        *_rackless(brokers),
        "# First let the preferred leaders lead, and print this plan again an hour later: it may be all that it needs.",
        f"{_election(servers)} --all-topic-partitions",
    ]
    # What has nothing to be copied is done at once, up to the next that has.
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
    """Print where the replicas go that topics lack, or that lie on parked brokers or in one rack."""
    from streamwarden.plans.replicas import place

    config = shared.config_if_any()
    with shared.warehouse().connect() as connection:
        judged = ask(connection, "plans/replicas", cluster=cluster)
        if not judged:
            raise StreamwardenError(f"{cluster}: nothing was judged of its topics' replicas.")
        topics = [row for row in judged if row["topic"]]
        if not topics:
            raise StreamwardenError(f"{cluster}: as last judged, its topics want no other replicas.")
        brokers, partitions = _held(connection, cluster)
    placed = place(brokers, topics, partitions)
    throttle = None if throttle_mb is None else throttle_mb * 1e6
    lines = replicas_plan(cluster, brokers, topics, placed, config.bootstrap_servers(cluster), throttle)
    print("\n".join(lines))


def replicas_plan(
    cluster: str, brokers: list[Row], topics: list[Row], placed: list[Placed], servers: str, throttle: float | None
) -> list[str]:
    """The lines: comments, and commands for a shell; a file for each topic."""
    by_id = {one["broker_id"]: one for one in brokers}
    lines = [f"# {cluster}: {counted(len(placed), 'topic')}, one after the other.", *_rackless(brokers)]
    told = {row["weakness"]: (row["shown_topics"], row["topics"]) for row in topics}
    lines += [
        f"# Of {counted(all_of_it, 'topic')} ({weakness}) the {shown} largest: print it again when they are done."
        for weakness, (shown, all_of_it) in told.items()
        if all_of_it is not None and all_of_it > shown
    ]
    for number, one in enumerate(placed, 1):
        lines += _add(f"replicas-{number:02}.json", one, by_id, servers, throttle)
    return lines


def _add(file: str, one: Placed, brokers: dict[int, Row], servers: str, throttle: float | None) -> list[str]:
    """A topic: how many replicas and how large, what can't be done, its file, to begin it and to see its end."""
    added = sum(len(placement.added) for placement in one.placements)
    copied = readable("copied_bytes", sum(placement.copied_bytes for placement in one.placements))[1]
    head = f"# {one.topic} ({one.weakness}): {counted(added, 'replica')} to copy, {copied}."
    if one.moving:
        head += f" Not now {counted(one.moving, 'partition')}: not whole, or being moved."
    if one.homeless:
        head += f" Of {counted(one.homeless, 'partition')} no broker can take one: for lack of brokers, racks or room."
    if not one.placements:
        return [head]
    getters = {broker for placement in one.placements for broker in placement.added}
    pace, why_not, unknown = _pace({placement.leader for placement in one.placements}, getters, brokers, throttle)
    if pace is None:
        return [f"{head} {why_not}"]
    return [
        f"{head} At {readable('bytes_per_second', pace)[1]} a broker.{unknown}",
        *_written(file, one.placements),
        f"{_tool(servers, file)} --throttle {int(pace)} --execute",
        f"{_tool(servers, file)} --verify  # until it is complete: only this takes the throttle away",
    ]


def _lead(file: str, moves: list[Move], servers: str) -> list[str]:
    """Other leaders: their order in a file, and the elections."""
    names = [f"{move.topic}-{move.partition}" for move in moves]
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    elected = json.dumps({"partitions": [{"topic": one.topic, "partition": one.partition} for one in moves]})
    return [
        f"# Other leaders for {shown}: nothing to copy.",
        *_written(file, moves),
        f"{_tool(servers, file)} --execute",
        f"cat > elect-{file} <<'JSON'", elected, "JSON",
        f"{_election(servers)} --path-to-json-file elect-{file}",
    ]  # fmt: skip


def _copy(file: str, move: Move, brokers: dict[int, Row], servers: str, throttle: float | None) -> list[str]:
    """A replica: how large and how long, its file, to begin it, to see its end, and when to go on."""
    both = brokers[move.source], brokers[move.target]
    # A new replica copies from the leader, which is the one that gives where it leads.
    leader = move.source if move.replicas[0] == move.target else move.replicas[0]
    pace, why_not, unknown = _pace([leader], [move.target], brokers, throttle)
    size = readable("copied_bytes", move.copied_bytes)[1]
    head = f"# {move.topic}-{move.partition}: broker {move.source} -> {move.target}, {size}"
    if pace is None:
        return [f"{head}. {why_not}"]
    minutes = max(1, round(move.copied_bytes / pace / 60))
    usual = "; ".join(
        f"broker {one['broker_id']} {_rate(one, 'bytes_in_per_second')} in, {_rate(one, 'bytes_out_per_second')} out"
        for one in both
    )
    return [
        f"{head}, about {minutes} min at {readable('bytes_per_second', pace)[1]}.{unknown}",
        *_written(file, [move]),
        f"{_tool(servers, file)} --throttle {int(pace)} --execute",
        f"{_tool(servers, file)} --verify  # until it is complete: only this takes the throttle away",
        f"# Go on when what they get and send is within 10 % of before: {usual}.",
    ]


def _pace(
    senders: Iterable[int], getters: Iterable[int], brokers: dict[int, Row], throttle: float | None
) -> tuple[float | None, str, str]:
    """Bytes a second, or why not now; and what isn't known. The network counts where it is known, the disks must be."""
    if throttle is not None:
        return throttle, "", ""
    sending, getting = ([brokers.get(broker, {}) for broker in some] for some in (senders, getters))
    disks = [one.get("spare_disk_bytes_per_second") for one in (*sending, *getting)]
    network = [one.get("spare_out_bytes_per_second") for one in sending]
    network += [one.get("spare_in_bytes_per_second") for one in getting]
    if None in disks:
        return None, "What their disks have left isn't known: say how fast, --throttle-mb.", ""
    for what, spare in (("disks", disks), ("network", network)):
        if min((one for one in spare if one is not None), default=_LEAST_THROTTLE) < _LEAST_THROTTLE:
            return None, f"Not now: their {what} {'have' if what == 'disks' else 'has'} less than 30 % left.", ""
    unknown = (
        " What their network has left isn't known: the disks' spare alone sets the pace." if None in network else ""
    )
    return min(one for one in (*disks, *network) if one is not None), "", unknown


def _rackless(brokers: Sequence[Row]) -> list[str]:
    """What isn't known of the racks."""
    lacking = [str(one["broker_id"]) for one in brokers if one["rack"] is None]
    if not lacking:
        return []
    if len(lacking) == len(brokers):
        return ["# No broker tells a rack (broker.rack): replicas may come to lie in one zone."]
    return [f"# The rack of broker {', '.join(lacking)} isn't known: replicas may come to lie in one zone there."]


def _written(file: str, moves: Sequence[Move | Placement]) -> list[str]:
    return _file(
        file, [{"topic": one.topic, "partition": one.partition, "replicas": list(one.replicas)} for one in moves]
    )


def _file(name: str, places: list[dict[str, object]]) -> list[str]:
    """A file for the tool that reassigns."""
    return [f"cat > {name} <<'JSON'", json.dumps({"version": 1, "partitions": places}), "JSON"]


def _tool(servers: str, file: str) -> str:
    return f"kafka-reassign-partitions.sh --bootstrap-server {servers} --reassignment-json-file {file}"


def _election(servers: str) -> str:
    return f"kafka-leader-election.sh --bootstrap-server {servers} --election-type preferred"


def _rate(broker: Row, column: str) -> str:
    return readable("bytes_per_second", broker[column])[1]


def _spreads(spreads: dict[str, float]) -> str:
    return ", ".join(f"{load} {spread:.0%}".replace("%", " %") for load, spread in spreads.items())

"""The faults: what each does to a run of an hour, and how it is repaired.

A fault begins at some moment of the run and ends some seconds later. All faults end before the hour is run again.
"""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import psutil
import sqlalchemy as sa
from demo.aws_faults import Kind as AwsKind
from streamwarden.base.catalog import APPS
from streamwarden.base.embedded import RECOVERY_SECONDS
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.warehouse import embedded_url, engine
from streamwarden.store.migrate import migrate

from tests.chaos.world import FAKETIME, Kind, Stumble, World, tree

EVERY_KIND: frozenset[Kind] = frozenset({"hour", "backfill", "airflow"})


def _asking(*sources: str) -> frozenset[str]:
    return frozenset(app.name for app in APPS.values() if {*sources} & {*app.reads})


ASK_AWS, ASK_JVMS = _asking("cloudwatch", "autoscaling"), _asking("jmx")
ASK_BROKERS = _asking("kafka_offsets", "changelog_values")
DISK_FULL_BYTES = 64 * 1024
"""File size limit of PostgreSQL while its disk is full: below the size of most tables and of every WAL segment."""


@dataclass(frozen=True)
class Fault:
    """A kind of fault: how it begins and ends, and which apps it disturbs."""

    name: str
    begin: Callable[[World, psutil.Process, random.Random], None]
    end: Callable[[World], None] = lambda world: None
    kills_runner: bool = False
    """Whether the process that runs the hour is killed, or may be unusable afterwards."""
    meets: frozenset[str] = frozenset(APPS)
    """Apps that read what the fault breaks."""
    is_trackers: bool = False
    """Whether the fault only takes effect if there are tickets to file."""
    is_beforehand: bool = False
    """Whether the fault begins before the run, because a run checks for it only at its start."""
    is_refused: bool = False
    """Whether a run refuses to start under this fault."""
    needs_clock: bool = False
    """Whether the fault needs processes that see the clock of the world."""
    kinds: frozenset[Kind] = frozenset({"hour", "backfill"})
    """Kinds of rounds that have the fault."""

    @property
    def is_available(self) -> bool:
        """Whether this host has the tools that the fault needs."""
        return FAKETIME is not None or not self.needs_clock


def _kill(pick: Callable[[psutil.Process], list[psutil.Process]]) -> Callable[..., None]:
    def begin(_: World, runner: psutil.Process, chance: random.Random) -> None:
        for process in pick(runner):
            with suppress(psutil.NoSuchProcess):
                process.kill()

    return begin


def jvms(runner: psutil.Process) -> list[psutil.Process]:
    return [process for process in tree(runner) if _name(process) == "java"]


def _python_workers(runner: psutil.Process) -> list[psutil.Process]:
    return [process for jvm in jvms(runner) for process in tree(jvm) if _name(process).startswith("python")][:2]


def _name(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return process.name()
    return ""


def _crash_postgres(world: World, *_: object) -> None:
    if server := world.postmaster():
        server.kill()


def _restart_postgres(world: World) -> None:
    _limit_files(world, "unlimited")
    until = time.monotonic() + RECOVERY_SECONDS
    while True:
        try:
            world.start_postgres()
            with engine(embedded_url(world.postgres, "postgres")).connect() as connection:
                connection.execute(sa.text("select 1"))
                return
        except (StreamwardenError, sa.exc.OperationalError) as error:
            if time.monotonic() > until:
                raise TimeoutError(f"PostgreSQL does not start again: {error}") from error
        time.sleep(0.2)


def _cut_connections(world: World, *_: object) -> None:
    with engine(embedded_url(world.postgres, "postgres")).connect() as connection:
        connection.exec_driver_sql("select pg_terminate_backend(pid) from pg_stat_activity where datname = 'warehouse'")


def _fill_disk(world: World, *_: object) -> None:
    _limit_files(world, str(DISK_FULL_BYTES))


def _limit_files(world: World, most_bytes: str) -> None:
    """Sets the limit as the user of PostgreSQL: root in a container may not be allowed to limit its processes."""
    server = world.postmaster()
    for process in tree(server) if server else []:
        with suppress(psutil.NoSuchProcess):
            user, group = process.uids().real, process.gids().real
            limit = ["prlimit", f"--pid={process.pid}", f"--fsize={most_bytes}:unlimited"]
            done = subprocess.run(limit, user=user, group=group, capture_output=True, text=True, check=False)
            if done.returncode and process.is_running():
                raise RuntimeError(done.stderr.strip())


def _kill_broker(world: World, *_: object) -> None:
    with suppress(psutil.NoSuchProcess):  # another fault killed it before
        world.broker.kill()


def _resume_broker(world: World) -> None:
    with suppress(Exception):
        world.broker.check()
        psutil.Process(world.broker.pid).send_signal(signal.SIGCONT)
        return
    world.broker.start()


def _pause_broker(world: World, *_: object) -> None:
    with suppress(psutil.NoSuchProcess):
        psutil.Process(world.broker.pid).send_signal(signal.SIGSTOP)


def _aws(kind: AwsKind) -> Fault:
    def begin(world: World, _: psutil.Process, chance: random.Random) -> None:
        assert world.aws
        world.aws.faults.inject(kind, times=chance.randint(1, 12), after=chance.randint(0, 3), seconds=2.0)

    def end(world: World) -> None:
        assert world.aws
        world.aws.faults.clear()

    return Fault(f"AWS: {kind}", begin, end, meets=ASK_AWS, kinds=EVERY_KIND)


def _front(name: str, which: str, stumble: Stumble, meets: frozenset[str] = frozenset(APPS)) -> Fault:
    def begin(world: World, *_: object) -> None:
        getattr(world, which).stumble = stumble

    def end(world: World) -> None:
        getattr(world, which).stumble = None

    return Fault(f"{name}: {stumble}", begin, end, meets=meets, is_trackers=which == "tracker", kinds=EVERY_KIND)


def _of_airflow(component: str) -> Fault:
    """Kills only this process. Its children, such as the tasks of a scheduler, end when it is started again."""

    def begin(world: World, *_: object) -> None:
        assert world.airflow
        with suppress(psutil.NoSuchProcess):
            psutil.Process(world.airflow.process(component).pid).kill()

    def end(world: World) -> None:
        assert world.airflow
        world.airflow.process(component).start()

    return Fault(f"Airflow: {component} killed", begin, end, kinds=frozenset({"airflow"}))


def _newer_release(world: World, *_: object) -> None:
    with engine(world.url).begin() as connection:
        connection.exec_driver_sql(
            "insert into public.schema_migration (name, checksum) values ('migrations/9999_newer.sql', 'x')"
        )


def _older_again(world: World) -> None:
    with engine(world.url).begin() as connection:
        connection.exec_driver_sql("delete from public.schema_migration where name = 'migrations/9999_newer.sql'")


def _older_schema(world: World, _: psutil.Process, chance: random.Random) -> None:
    """Marks a view as created from an older text."""
    with engine(world.url).begin() as connection:
        views = connection.execute(
            sa.text("select name from public.schema_migration where name like 'views/%' order by 1")
        ).scalars()
        connection.execute(
            sa.text("update public.schema_migration set checksum = 'older' where name = :view"),
            {"view": chance.choice(list(views))},
        )


def _migrate(world: World) -> None:
    migrate(engine(world.url))


def _jump(world: World, _: psutil.Process, chance: random.Random) -> None:
    world.clock.jump(chance.choice(["-40d", "-2h", "-90s", "+90s", "+2h", "+40d"]))


def _right_clock(world: World) -> None:
    world.clock.jump("+0")
    time.sleep(2)  # until processes see it


BACKFILL = Fault("backfill in random order", lambda *_: None, is_beforehand=True, kinds=frozenset({"backfill"}))
TWO_RUNS = Fault("two runs of the hour", lambda *_: None, is_beforehand=True, kinds=EVERY_KIND)
FAULTS = (
    Fault("driver killed", _kill(tree), kills_runner=True),
    Fault("JVM killed", _kill(jvms), kills_runner=True),
    Fault("Python workers killed", _kill(_python_workers)),
    Fault("PostgreSQL crashed", _crash_postgres, _restart_postgres),
    Fault("PostgreSQL disk full", _fill_disk, _restart_postgres),
    Fault("connections cut", _cut_connections, kinds=EVERY_KIND),
    Fault("newer release's schema", _newer_release, _older_again, is_beforehand=True, is_refused=True),
    Fault("older schema", _older_schema, _migrate, is_beforehand=True, is_refused=True),
    Fault("clock jumps", _jump, _right_clock, needs_clock=True),
    Fault("broker killed", _kill_broker, _resume_broker, meets=ASK_BROKERS),
    Fault("broker hangs", _pause_broker, _resume_broker, meets=ASK_BROKERS),
    *map(_aws, ("throttle", "deny", "server_error", "reset", "hang", "endless")),
    *map(_aws, ("malformed", "internal_error", "partial")),
    *(_front("metrics", "agents", stumble, ASK_JVMS) for stumble in ("refuse", "reset", "cut", "slow", "endless")),
    *(_front("tracker", "tracker", stumble) for stumble in ("refuse", "reset", "cut", "lose", "slow", "endless")),
    *map(_of_airflow, ("scheduler", "api-server")),
    BACKFILL,
    TWO_RUNS,
)

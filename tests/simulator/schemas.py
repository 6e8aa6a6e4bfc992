"""Changelogs of state stores: documents of random schemas that releases change, written by key, and compacted.

Compaction keeps the last record of each key, and all records of the last hour. Old values disappear as keys are
rewritten, and each evaluated hour reads the log as of then. A fault is a release after which no single reader can read
old and new values. The fault ends when compaction has removed the old values.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from streamwarden.base.config import Config
from streamwarden.base.hours import HOUR, start_of_hour
from streamwarden.detectors import Finding

from spark_apps.apps import state_stores as app
from spark_apps.models.streams_topics import StreamsTopics
from spark_apps.sources.schema_registry import SchemaRegistry
from tests.simulator import registered_kinds
from tests.simulator.bench import Bench
from tests.simulator.frames import rows_frame
from tests.simulator.registered_kinds import Registered
from tests.simulator.scenario import EVALUATED, START, Case, Fault, Scenario, Truth, Verdict
from tests.simulator.score import Score, score

DETECTOR = "state_store_schema_drift"
CLUSTER, PARTITIONS = "shop", 4
ENOUGH, GONE = 150, 5
"""Values of the new kind from which on the detector must fire; values of the old kind below which the fault is over."""
CONTROL_HOURS = 3
PACE, SLOW_PACE = (0.05, 0.25), (0.02, 0.1)
LARGE, RARE = 20_000, 30
"""Values of a large log, and the number of them in a rare old version."""
ABSENT: Any = object()
_WORDS = ("order", "total", "customer", "price", "status", "note", "amount", "created", "address", "city", "count",
          "source", "flag", "channel", "tax", "items", "state", "code", "rate", "limit", "owner", "kind")  # fmt: skip
_BREAKS_ALL, _RESTORE, _ROLLBACK = "critical: restore and rollback", "critical: restore", "warning: rollback"
VERDICTS = {
    "type changed": (_BREAKS_ALL,),
    "object became text": (_BREAKS_ALL,),
    "rare old version": (_BREAKS_ALL,),
    "required field removed": (_ROLLBACK,),
    "required field added": (_RESTORE,),
    "nullability gained": (_ROLLBACK,),
    "nullability lost": (_RESTORE,),
    "made optional": (_ROLLBACK,),
    "type narrowed": (_RESTORE,),
    "rolled back": (_BREAKS_ALL,),  # before it is, and after
    "integers became fractions": (_ROLLBACK,),
    "made required": ("warning: restore",),
    "field was gone and is back": ("warning: restore",),
    "nulls came and went": ("warning: restore",),
    "fractions came and went": ("warning: restore",),
    "constant added": ("warning: rollback",),
    "constant removed": ("warning: restore",),
    **registered_kinds.VERDICTS,
}
KNOWN, CONSTANT, KNOWN_BY = 24 * HOUR, "refunded", 25
"""Hours for which a constant must have been absent; the constant that appears and disappears here; and the number of
values that must show a change before the detector may fire: fewer may be a mistake."""
Settings = Mapping[str, Mapping[str, str]]
MADE_BY_STREAMS: Settings = {
    "cleanup.policy": {"value": "compact", "source": "dynamic_topic_config"},
    "message.timestamp.type": {"value": "CreateTime", "source": "dynamic_topic_config"},
}
MADE_BY_HAND: tuple[Settings, ...] = (
    {"cleanup.policy": {"value": "delete", "source": "default_config"}},
    {
        "cleanup.policy": {"value": "compact", "source": "dynamic_topic_config"},
        "message.timestamp.type": {"value": "CreateTime", "source": "default_config"},
    },
)
_LEAVES = ("id", "enum", "text", "integer", "number", "boolean", "time")


@dataclass(frozen=True)
class Node:
    """A field: its type, its frequency, and its frequency of null."""

    name: str
    kind: str
    present: float = 1.0
    null: float = 0.0
    children: tuple[Node, ...] = ()
    options: tuple[Any, ...] = ()
    """Constants of an enum; kinds of a union."""

    def value(self, chance: random.Random) -> Any:
        if self.present < 1 and chance.random() >= self.present:
            return ABSENT
        if self.null and chance.random() < self.null:
            return None
        return self.of_kind(self.kind, chance)

    def of_kind(self, kind: str, chance: random.Random) -> Any:
        match kind:
            case "object":
                found = {child.name: child.value(chance) for child in self.children}
                return {name: value for name, value in found.items() if value is not ABSENT}
            case "objects":
                return [self.of_kind("object", chance) for _ in range(chance.randint(1, 3))]
            case "integers":
                return [chance.randrange(100) for _ in range(chance.randint(0, 3))]
            case "union":
                return self.of_kind(chance.choice(self.options), chance)
            case "enum":
                return chance.choice(self.options)
            case "map":
                return {f"c{chance.randrange(5000)}": chance.randrange(9) for _ in range(chance.randint(0, 4))}
            case "words":
                return {
                    f"{chance.choice(_WORDS)}-{chance.choice(_WORDS)}": {"n": 1} for _ in range(chance.randint(1, 3))
                }
            case "number":
                return 5 if chance.random() < 0.1 else round(chance.uniform(0, 500), 2)
            case "integer":
                return chance.randrange(10_000)
            case "boolean":
                return chance.random() < 0.5
            case "time":
                return f"2026-01-{chance.randint(1, 28):02d}T{chance.randint(0, 23):02d}:00:00Z"
            case "text":
                return chance.choice(("", "manually", "Käse und Brot", 'a "quoted" one'))
            case _:
                return f"{chance.randrange(10**12):012d}"


@dataclass
class Store:
    """A changelog: its releases, and its writes by time, key, and release."""

    topic: str
    releases: list[tuple[datetime, timedelta, Node]]
    """Releases as (start, duration of the rolling deploy, schema); the first one starts at START."""
    keys: int
    times: np.ndarray
    written: np.ndarray
    """Minutes since START and key of each write."""
    release: np.ndarray
    """Release of each write."""
    rest: Callable[[Any, float, random.Random], Any] | None = None
    """A property of values that no release sets: a campaign, the age of a record."""
    settings: Settings | None = None
    """Topic configs, if the ACL allows to read them."""
    schemas: tuple[Registered, ...] = ()
    """Registered schema of each release; none: values are JSON."""

    def survivors(self, minute: float) -> np.ndarray:
        """Writes in the log at a minute."""
        until = int(np.searchsorted(self.times, minute))
        clean = int(np.searchsorted(self.times, minute - 60))
        _, last = np.unique(self.written[:clean][::-1], return_index=True)
        return np.concatenate([np.sort(clean - 1 - last), np.arange(clean, until)])

    def value(self, write: int) -> bytes:
        chance = random.Random(f"{self.topic} {write}")  # noqa: S311 a simulation
        if self.schemas:
            return self.schemas[self.release[write]].frame(chance)
        value = self.releases[self.release[write]][2].value(chance)
        if self.rest is not None:
            value = self.rest(value, float(self.times[write]), chance)
        return value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode()

    def values_with(self, constant: str, moment: datetime) -> int:
        """Number of values in the log with a constant that occurs at one path only."""
        there = self.survivors((moment - START) / timedelta(minutes=1))
        return sum(json.dumps(constant).encode() in self.value(write) for write in there.tolist())

    def nulls_of(self, release: int, names: list[str], moment: datetime) -> tuple[int, int]:
        """Number of values of a release in the log, and how many of them have only null at a path.

        A null next to a value within an array is invisible: schema inference merges the elements of an array.
        """
        there = self.survivors((moment - START) / timedelta(minutes=1))
        leaves = [_leaves(json.loads(self.value(w)), names) for w in there[self.release[there] == release].tolist()]
        return len(leaves), sum(bool(found) and set(found) == {None} for found in leaves)


@dataclass
class Fleet:
    """All stores and the truth about them."""

    scenario: Scenario
    truth: Truth = field(default_factory=Truth)
    stores: dict[str, Store] = field(default_factory=dict)
    hours: dict[str, set[datetime]] = field(default_factory=dict)
    groups: set[str] = field(default_factory=set)


Place = tuple[int, ...]


def _leaves(value: Any, names: list[str]) -> list[Any]:
    """Values at a path, in each element of arrays."""
    if not names:
        return [value]
    objects = [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict)]
    return [leaf for one in objects if names[0] in one for leaf in _leaves(one[names[0]], names[1:])]


class _Builder:
    """Adds stores to a fleet."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.chance = random.Random(f"{fleet.scenario.seed} schemas")  # noqa: S311 a simulation

    def schema(self) -> Node:
        """A random document schema with nested, optional, nullable, and high-cardinality fields."""
        return Node("", "object", children=(*self.fields(self.chance.randint(5, 11), 0), Node("version", "integer")))

    def fields(self, count: int, level: int) -> list[Node]:
        names = self.chance.sample(_WORDS, count)
        return [self.one(name, level) for name in names]

    def one(self, name: str, level: int) -> Node:
        kinds = [*_LEAVES, *_LEAVES, "object", "objects", "integers", "map", "words"] if level < 2 else [*_LEAVES]
        kind = self.chance.choice(kinds)
        present = self.chance.choice([1, 1, 1, 1, 0.9, 0.5, 0.1])
        null = self.chance.choice([0, 0, 0, 0, 0.2]) if kind not in ("map", "words") else 0
        children = tuple(self.fields(self.chance.randint(2, 5), level + 1)) if kind.startswith("object") else ()
        options = tuple(self.chance.sample(("new", "paid", "sent", "lost", "back"), 3)) if kind == "enum" else ()
        return Node(name, kind, present, null, children, options)

    def required(self, root: Node, *kinds: str) -> Place:
        """A path to a required, non-null field of one of these kinds."""
        found: list[Place] = []

        def walk(node: Node, path: Place) -> None:
            for i, child in enumerate(node.children):
                if child.present == 1 and child.null == 0:
                    if not kinds or child.kind in kinds:
                        found.append((*path, i))
                    walk(child, (*path, i))

        walk(root, ())
        return self.chance.choice(found) if found else ()

    def edit(self, node: Node, path: Place, change: Callable[[Node], Node | None]) -> Node:
        """The schema with one field changed or removed."""
        if not path:
            changed = change(node)
            assert changed is not None
            return changed
        children = list(node.children)
        if len(path) > 1:
            children[path[0]] = self.edit(children[path[0]], path[1:], change)
        elif (changed := change(children[path[0]])) is None:
            del children[path[0]]
        else:
            children[path[0]] = changed
        return replace(node, children=tuple(children))

    def leaf(self, root: Node, *kinds: str) -> tuple[Node, Place]:
        """A schema with a required field of such a kind, and the path of the field."""
        path = self.required(root, *kinds)
        if path:
            return root, path
        extra = Node("extra", self.chance.choice(kinds or _LEAVES), options=("new", "paid"))
        return replace(root, children=(*root.children, extra)), (len(root.children),)

    def at(self) -> datetime:
        span = timedelta(days=self.fleet.scenario.days) - 48 * HOUR
        return START + 24 * HOUR + timedelta(minutes=int(self.chance.random() * span / timedelta(minutes=1)))

    def store(self, releases: list[tuple[datetime, timedelta, Node]], pace: tuple[float, float] = PACE) -> Store:
        """Writes of a store with these releases; `pace`: how many of its keys' number an hour, from and to.

        Of two applications, one has a group and unreadable topic configs; the other is recognized by its topic configs.
        """
        number = len(self.fleet.stores)
        topic = f"app{number // 2}-store-{number}-changelog"
        if has_group := number // 2 % 2 == 0:
            self.fleet.groups.add(f"app{number // 2}")
        keys = self.chance.choice([400, 800, 1200])
        rate = keys * self.chance.uniform(*pace)  # writes per hour
        minutes = self.fleet.scenario.days * 1440
        random_ = np.random.default_rng([self.fleet.scenario.seed, len(self.fleet.stores)])
        count = int(rate * minutes / 60)
        # Every key is written at the start; after that some are written often, others rarely.
        popularity = random_.pareto(2, keys) + 0.2
        later = np.sort(random_.uniform(60, minutes, count))
        times = np.concatenate([np.linspace(0, 59, keys), later])
        written = np.concatenate([np.arange(keys), random_.choice(keys, count, p=popularity / popularity.sum())])
        release = np.zeros(len(times), dtype=np.int64)
        for i, (start, lasts, _) in enumerate(releases[1:], 1):
            first, length = (start - START) / timedelta(minutes=1), max(lasts / timedelta(minutes=1), 1e-9)
            moved = np.clip((times - first) / length, 0, 1)
            release = np.where(random_.random(len(times)) < moved, i, release)
        made = Store(topic, releases, keys, times, written, release, settings=None if has_group else MADE_BY_STREAMS)
        self.fleet.stores[topic] = made
        self.fleet.hours[topic] = set()
        return made

    def lasting(self) -> timedelta:
        return timedelta(minutes=self.chance.choice([0, 0, 3, 20, 60]))

    def fault(self, kind: str, old: Node, *new: Node, pace: tuple[float, float] = PACE) -> None:
        """Adds a store with breaking releases; a second release rolls the first one back."""
        start = self.at()
        releases = [(START, timedelta(0), old), (start, self.lasting(), new[0])]
        if len(new) > 1:
            releases.append((start + timedelta(hours=5), timedelta(0), new[1]))
        store = self.store(releases, pace)
        due, ends = self._course(store, start, rolled_back=len(new) > 1)
        self.fleet.truth.decoys[store.topic] = kind
        if due is None:
            self.fleet.truth.unclear.append((store.topic, start, ends))
            return
        self.fleet.truth.faults.append(Fault(store.topic, kind, start, due, ends, verdicts=VERDICTS[kind]))
        self.near(store.topic, start, int((due - start_of_hour(start)) / HOUR) + 4)

    def _course(self, store: Store, start: datetime, *, rolled_back: bool) -> tuple[datetime | None, datetime]:
        """The hour in which the detector must fire, and the end of the fault."""
        due, hour = None, start_of_hour(start)
        deployed = (start + store.releases[1][1] - START) / timedelta(minutes=1)
        while hour + HOUR <= self.fleet.scenario.end:
            there = store.survivors((hour + HOUR - START) / timedelta(minutes=1))
            of = store.release[there]
            # While both releases run, their ratio is arbitrary.
            old, new = int((of == 0).sum()), int(((of == 1) & (store.times[there] >= deployed)).sum())
            # The break is in values that the newest release did not write.
            left = new if rolled_back and int((of == 2).sum()) else old
            if due is None and new >= ENOUGH and old >= ENOUGH:
                due = hour
            if left < (1 if store.schemas else GONE):
                break
            hour += HOUR
        return due, hour

    def near(self, topic: str, start: datetime, hours: int) -> None:
        first = start_of_hour(start) - HOUR
        self.fleet.hours[topic] |= {first + n * HOUR for n in range(hours)}

    def decoy(self, kind: str, old: Node, new: Node | None = None, lasts: timedelta | None = None) -> Store:
        """Adds a decoy: a harmless release, or none."""
        start = self.at()
        lasting = self.lasting() if lasts is None else lasts
        store = self.store([(START, timedelta(0), old), *([(start, lasting, new)] if new else [])])
        self.fleet.truth.decoys[store.topic] = kind
        self.near(store.topic, start, 5 + int(lasting / HOUR))
        self.fleet.hours[store.topic].add(start_of_hour(start) + 12 * HOUR)
        return store

    # Faults

    def type_changed(self) -> None:
        old, path = self.leaf(self.schema(), "integer", "number", "id", "enum", "boolean")
        kinds = {"integer": ["id", "object", "integers"], "number": ["id", "boolean"], "id": ["integer", "integers"],
                 "enum": ["integer", "object"], "boolean": ["id", "integer"]}  # fmt: skip

        def change(node: Node) -> Node:
            kind = self.chance.choice(kinds[node.kind])
            return replace(node, kind=kind, children=(Node("value", "integer"), Node("unit", "id")))

        self.fault("type changed", old, self.edit(old, path, change))

    def object_to_text(self) -> None:
        extra = Node("place", "object", children=(Node("city", "id"), Node("zip", "integer")))
        base = self.schema()
        old = replace(base, children=(*base.children, extra))
        new = self.edit(old, (len(base.children),), lambda node: replace(node, kind="id", children=()))
        self.fault("object became text", old, new)

    def field_removed(self) -> None:
        old, path = self.leaf(self.schema())
        self.fault("required field removed", old, self.edit(old, path, lambda _: None))

    def field_added(self) -> None:
        old = self.schema()
        new = replace(old, children=(*old.children, Node("extra", self.chance.choice(_LEAVES), options=("a", "b"))))
        self.fault("required field added", old, new)

    def null_gained(self) -> None:
        """Visible once enough of the new values have only null, and so many old ones have none that chance is out."""
        old, path = self.leaf(self.schema(), *_LEAVES)
        names = _names(old, path)
        new = self.edit(old, path, lambda node: replace(node, null=0.35))
        self._fault_once("nullability gained", old, new, _nulls_show(names, with_nulls=1))

    def null_lost(self) -> None:
        """Visible once there are so many new values that enough of them would have had only null before."""
        old, path = self.leaf(self.schema(), *_LEAVES)
        names = _names(old, path)
        self._fault_once(
            "nullability lost",
            self.edit(old, path, lambda node: replace(node, null=0.35)),
            old,
            _nulls_show(names, with_nulls=0),
        )

    def made_optional(self) -> None:
        old, path = self.leaf(self.schema(), *_LEAVES)
        self.fault("made optional", old, self.edit(old, path, lambda node: replace(node, present=0.5)))

    def made_required(self) -> None:
        new, path = self.leaf(self.schema(), *_LEAVES)
        self.fault("made required", self.edit(new, path, lambda node: replace(node, present=0.5)), new)

    def fractions(self) -> None:
        old, path = self.leaf(self.schema(), "integer")
        new = self.edit(old, path, lambda node: replace(node, kind="number"))
        self.fault("integers became fractions", old, new)

    def narrowed(self) -> None:
        new, path = self.leaf(self.schema(), "id")
        old = self.edit(new, path, lambda node: replace(node, kind="union", options=("id", "integer")))
        self.fault("type narrowed", old, new)

    def rolled_back(self) -> None:
        old, path = self.leaf(self.schema(), "integer")
        new = self.edit(old, path, lambda node: replace(node, kind="id"))
        self.fault("rolled back", old, new, old)

    def reverted(self, kind: str, old: Node, new: Node) -> None:
        """A release that is rolled back some hours later: its values stay in the log."""
        start = self.at()
        back = start + timedelta(hours=self.chance.uniform(6, 10))
        store = self.store([(START, timedelta(0), old), (start, timedelta(0), new), (back, timedelta(0), old)])
        self.fleet.truth.decoys[store.topic] = kind
        due = ends = start_of_hour(back)
        while ends + HOUR <= self.fleet.scenario.end and self._left(store, ends + HOUR, 1) >= ENOUGH:
            due = due if self._left(store, due + HOUR, 2) >= ENOUGH else due + HOUR
            ends += HOUR
        # While the release runs, the change is a fault of another kind, which is scored there.
        unclear_until = back if due < ends else self.fleet.scenario.end
        self.fleet.truth.unclear.append((store.topic, start, unclear_until))
        if due >= ends:
            return
        self.fleet.truth.faults.append(
            Fault(store.topic, kind, back, due, self.fleet.scenario.end, verdicts=VERDICTS[kind])
        )
        self.near(store.topic, back, int((due - start_of_hour(back)) / HOUR) + 3)

    def _left(self, store: Store, moment: datetime, release: int) -> int:
        there = store.survivors((moment - START) / timedelta(minutes=1))
        return int((store.release[there] == release).sum())

    def field_gone_and_back(self) -> None:
        old, path = self.leaf(self.schema(), *_LEAVES)
        self.reverted("field was gone and is back", old, self.edit(old, path, lambda _: None))

    def nulls_came_and_went(self) -> None:
        old, path = self.leaf(self.schema(), *_LEAVES)
        self.reverted("nulls came and went", old, self.edit(old, path, lambda node: replace(node, null=0.5)))

    def fractions_came_and_went(self) -> None:
        old, path = self.leaf(self.schema(), "integer")
        self.reverted("fractions came and went", old, self.edit(old, path, lambda node: replace(node, kind="number")))

    def constants(self) -> tuple[Node, Node]:
        """A schema with an enum at a path, and the same with one more constant."""
        root, path = self.leaf(self.schema(), "enum")
        few = ("new", "paid", "sent", "lost")
        fewer, more = (
            self.edit(root, path, lambda node, options=options: replace(node, options=options))
            for options in (few, (*few, CONSTANT))
        )
        return fewer, more

    def constant_added(self) -> None:
        self._fault_once("constant added", *self.constants(), _holds_constant)
        self.days_before()

    def constant_removed(self) -> None:
        """Certain after a day without it, if enough values of it are still in the log: keys are rarely rewritten."""
        fewer, more = self.constants()
        self._fault_once("constant removed", more, fewer, _holds_constant, KNOWN + 2 * HOUR, SLOW_PACE)
        self.days_before()

    def _fault_once(
        self,
        kind: str,
        old: Node,
        new: Node,
        shows: Callable[[Store, datetime], bool],
        after: timedelta = timedelta(0),
        pace: tuple[float, float] = PACE,
    ) -> None:
        """The fault is due in the first hour from `after` on at whose end the values in the log show it."""
        faults = len(self.fleet.truth.faults)
        self.fault(kind, old, new, pace=pace)
        if len(self.fleet.truth.faults) == faults:
            return
        output = self.fleet.truth.faults.pop()
        store, due = self.fleet.stores[output.resource_name], max(output.due, start_of_hour(output.begins + after))
        while due + HOUR < output.ends and not shows(store, due + HOUR):
            due += HOUR
        if due + HOUR < output.ends:
            self.near(output.resource_name, due, 3)
            self.fleet.truth.faults.append(replace(output, due=due))
        else:
            self.fleet.truth.unclear.append((output.resource_name, output.begins, output.ends))

    def days_before(self) -> None:
        """Also evaluates hours of the previous day, whose constants of the last store are compared."""
        topic = list(self.fleet.stores)[-1]
        before = [KNOWN * quarter / 4 for quarter in (1, 2, 3, 4)]
        self.fleet.hours[topic] |= {h - ago for h in self.fleet.hours[topic] for ago in before if h - ago >= START}

    def rare_version(self) -> None:
        """The next release rewrites all but a few keys of a large store."""
        new, path = self.leaf(self.schema(), "integer")
        old = self.edit(new, path, lambda node: replace(node, kind="id"))
        start = start_of_hour(self.at())
        store = self.store([(START, timedelta(0), old), (start, timedelta(0), new)])
        minute = (start - START) / timedelta(minutes=1)
        keys = np.random.default_rng([self.fleet.scenario.seed, len(self.fleet.stores)]).permutation(LARGE)[RARE:]
        store.keys = LARGE
        store.times = np.concatenate([np.linspace(0, 59, LARGE), np.linspace(minute, minute + 59, len(keys))])
        store.written = np.concatenate([np.arange(LARGE), keys])
        store.release = np.repeat([0, 1], [LARGE, len(keys)])
        due, kind = start + 2 * HOUR, "rare old version"
        self.fleet.truth.decoys[store.topic] = kind
        fault = Fault(store.topic, kind, start, due, self.fleet.scenario.end, verdicts=VERDICTS[kind])
        self.fleet.truth.faults.append(fault)
        self.fleet.hours[store.topic] |= {start - HOUR, due}

    # Decoys

    def nothing(self) -> None:
        self.decoy("nothing changes", self.schema())

    def optional_added(self) -> None:
        old = self.schema()
        extra = Node("extra", self.chance.choice(_LEAVES), self.chance.choice([0.1, 0.5, 0.8]), options=("a", "b"))
        self.decoy("optional field added", old, replace(old, children=(*old.children, extra)))

    def long_deploy(self) -> None:
        """Two versions run in parallel for hours; they differ in an optional field."""
        base = self.schema()
        extra = Node("added", self.chance.choice(_LEAVES), 0.6, options=("a", "b"))
        new = replace(base, children=(*base.children, extra))
        self.decoy("rolling deploy of hours", base, new, lasts=6 * HOUR)

    def comes_and_goes(self) -> None:
        """A field set by campaigns for some hours at a time."""
        store = self.decoy("optional field comes and goes", self.schema())
        length = self.chance.choice([120, 240, 360])

        def campaign(value: Any, minute: float, chance: random.Random) -> Any:
            return value | ({"coupon": "x"} if int(minute / length) % 2 else {})

        store.rest = campaign

    def constants_by_turns(self) -> None:
        """Constants of the current shift, next to constants that occur all day."""
        store = self.decoy("constants of the day and of the night", self.schema())
        length = self.chance.choice([480, 720])

        def shift(value: Any, minute: float, chance: random.Random) -> Any:
            turn = ("early", "late", "night")[int(minute / length) % (1440 // length)]
            return value | {"shift": chance.choice((turn, turn, "web", "phone"))}

        store.rest = shift
        self.days_before()

    def labels_of_releases(self) -> None:
        """Labels: the version of the release, and the campaign of the week."""
        store = self.decoy("labels of releases", self.schema())
        first = self.chance.uniform(1500, 4000)

        def label(value: Any, minute: float, chance: random.Random) -> Any:
            return value | {"release": f"v{int(minute // first)}", "campaign": f"week {int(minute // 2500)}"}

        store.rest = label
        self.days_before()

    def orders_that_age(self) -> None:
        """Each key follows the lifecycle of its order: only recent records are new or paid."""
        life = ("new", "paid", "sent", "done")
        base = self.schema()
        releases = [
            (START, timedelta(0), replace(base, children=(*base.children, Node("state", "enum", options=(state,)))))
            for state in life
        ]
        store = self.decoy("orders that age", base)
        store.releases = releases
        minutes = self.fleet.scenario.days * 1440
        random_ = np.random.default_rng([self.fleet.scenario.seed, len(self.fleet.stores)])
        orders = int(minutes / 60 * self.chance.uniform(8, 25))
        ordered = np.sort(random_.uniform(0, minutes, orders))
        steps = np.cumsum(random_.exponential([0.1, 90, 240, 400], (orders, len(life))), axis=1)
        times = (ordered[:, None] + steps).ravel()
        by_time = np.argsort(times, kind="stable")
        store.keys, store.times = orders, times[by_time]
        store.written = np.repeat(np.arange(orders), len(life))[by_time]
        store.release = np.tile(np.arange(len(life)), orders)[by_time]
        self.days_before()

    def map_grows(self) -> None:
        """New keys of a map from some day on."""
        base = self.schema()
        old = replace(base, children=(*base.children, Node("by_customer", "map")))
        store = self.decoy("map with new keys", old)

        def fresh(value: Any, minute: float, chance: random.Random) -> Any:
            return value | {"by_day": {f"2026-01-{1 + int(minute // 1440) - n:02d}": 1 for n in range(3)}}

        store.rest = fresh

    def array_empty(self) -> None:
        """An array that is often empty, with optional fields in its elements."""
        base = self.schema()
        lines = Node("lines", "objects", 1.0, 0.0, (Node("sku", "id"), Node("gift", "boolean", 0.05)))
        store = self.decoy("empty arrays", replace(base, children=(*base.children, lines)))

        def sometimes(value: Any, minute: float, chance: random.Random) -> Any:
            return value | ({"lines": []} if chance.random() < 0.4 else {})

        store.rest = sometimes

    def slips(self) -> None:
        """A few in 100,000 values were written by a debugger."""
        store = self.decoy("a few slips", self.schema())

        def slip(value: Any, minute: float, chance: random.Random) -> Any:
            return value | ({"version": "oops"} if chance.random() < 0.003 else {})

        store.rest = slip

    def not_json(self) -> None:
        store = self.decoy("not JSON", self.schema())
        store.rest = lambda value, minute, chance: chance.randrange(2**40).to_bytes(8, "big")

    def begins_as_a_frame(self) -> None:
        """A custom binary format: a zero byte, then ids that no registry assigned."""
        store = self.decoy("bytes that begin as a frame", self.schema())
        store.rest = lambda value, minute, chance: (
            b"\x00" + chance.randrange(2**31, 2**32).to_bytes(4, "big") + chance.randbytes(chance.randint(4, 40))
        )

    def audit_log(self) -> None:
        """A custom topic with the name of a changelog: no state is restored from it.

        It is not compacted, or was not created by Streams and no group has the name of its application.
        """
        old, path = self.leaf(self.schema(), "integer")
        store = self.decoy("audit log", old, self.edit(old, path, lambda node: replace(node, kind="id")))
        for known in (self.fleet.stores, self.fleet.hours, self.fleet.truth.decoys):
            known[f"payments{store.topic}"] = known.pop(store.topic)
        store.topic, store.settings = f"payments{store.topic}", self.chance.choice(MADE_BY_HAND)

    def outer_join(self) -> None:
        """A store of an outer join: a byte for the side, then the value."""
        store = self.decoy("outer join", self.schema())
        store.rest = lambda value, minute, chance: (
            bytes([chance.randrange(2)]) + json.dumps(value, ensure_ascii=False).encode()
        )


def _nulls_show(names: list[str], *, with_nulls: int) -> Callable[[Store, datetime], bool]:
    """Whether so many values of the other release would have had only null at a path that chance is out.

    Args:
        with_nulls: the release that has nulls there, 0 or 1.
    """

    def shows(store: Store, at: datetime) -> bool:
        (total, nulls), (others, _) = (store.nulls_of(release, names, at) for release in (with_nulls, 1 - with_nulls))
        return nulls >= KNOWN_BY and others * nulls >= KNOWN_BY * total

    return shows


def _holds_constant(store: Store, moment: datetime) -> bool:
    return store.values_with(CONSTANT, moment) >= KNOWN_BY


def _names(root: Node, path: Place) -> list[str]:
    """Field names along a path."""
    if not path:
        return []
    child = root.children[path[0]]
    return [child.name, *_names(child, path[1:])]


FAULTS: tuple[registered_kinds.Make, ...] = (
    _Builder.type_changed,
    _Builder.field_removed,
    _Builder.field_added,
    _Builder.null_gained,
    _Builder.null_lost,
    _Builder.made_optional,
    _Builder.narrowed,
    _Builder.rolled_back,
    _Builder.object_to_text,
    _Builder.rare_version,
    _Builder.made_required,
    _Builder.fractions,
    _Builder.field_gone_and_back,
    _Builder.nulls_came_and_went,
    _Builder.fractions_came_and_went,
    _Builder.constant_added,
    _Builder.constant_removed,
    *registered_kinds.FAULTS,
)
DECOYS: tuple[Callable[[_Builder], object], ...] = (
    _Builder.begins_as_a_frame,
    _Builder.outer_join,
    _Builder.audit_log,
    _Builder.nothing,
    _Builder.optional_added,
    _Builder.comes_and_goes,
    _Builder.constants_by_turns,
    _Builder.labels_of_releases,
    _Builder.orders_that_age,
    _Builder.map_grows,
    _Builder.array_empty,
    _Builder.slips,
    _Builder.not_json,
    _Builder.long_deploy,
    *registered_kinds.DECOYS,
)


def build(scenario: Scenario) -> Fleet:
    """Stores of all kinds of faults and decoys in rotation."""
    fleet = Fleet(scenario)
    builder = _Builder(fleet)
    kinds = [kind for pair in zip_longest(scenario.some(FAULTS), DECOYS) for kind in pair if kind]
    first = builder.chance.randrange(len(kinds))  # a small fleet has only some of the kinds, which differ by seed
    for turn in range(scenario.stores):
        kinds[(first + turn) % len(kinds)](builder)
    for topic, hours in fleet.hours.items():
        if fleet.stores[topic].keys == LARGE:
            continue  # each of its hours takes as long as those of twenty others
        hours |= {START + HOUR * builder.chance.randrange(24, scenario.days * 24) for _ in range(CONTROL_HOURS)}
    return fleet


def cases(fleet: Fleet) -> list[Case]:
    """The hours to evaluate, of topics that the app recognizes as stores."""
    last, names = fleet.scenario.end - HOUR, StreamsTopics(fleet.groups, fleet.stores)
    stores = [topic for topic, store in fleet.stores.items() if names.has_store(topic, store.settings)]
    return [Case(topic, hour) for topic in stores for hour in sorted(fleet.hours[topic]) if hour <= last]


def evaluate(bench: Bench, scenario: Scenario) -> Score:
    """Simulates, evaluates, and scores."""
    scored = prepare(bench, scenario)
    return scored(bench.findings(DETECTOR))


def prepare(bench: Bench, scenario: Scenario) -> Callable[[list[Finding]], Score]:
    """Simulates and loads; returns what scores findings of the detector, with whatever parameters they were made."""
    fleet = build(scenario)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "values.parquet"
        _write(fleet, cases(fleet), file)
        values = bench.spark.read.parquet(str(file)).withColumn("gap", f.lit(None).cast("string"))
        sources = {"changelog_values": values, "schema_registry": _registry(bench, fleet)}
        frames = app.transform(sources, EVALUATED, Config())
        assert frames.pop("gaps").isEmpty()
        bench.load("state_stores", frames)
    for table in ("metrics.state_store_hourly", "metrics.state_store_change_hourly"):
        bench.remember(table, "topic")
    return lambda found: score(
        "schema drift",
        bench.detector(DETECTOR),
        [Verdict.of(row.resource.columns["topic"], row, _verdict(row)) for row in found],
        fleet.truth,
    )


def _registry(bench: Bench, fleet: Fleet) -> DataFrame:
    """The registry of the cluster, with the schemas of all stores."""
    rows = [
        {"cluster": CLUSTER, "subject": f"{store.topic}-value", "version": version, **schema._asdict()}
        for store in fleet.stores.values()
        for version, schema in enumerate(store.schemas, 1)
    ]
    return rows_frame(bench.spark, rows, SchemaRegistry({}).schema())


def _verdict(row: Finding) -> str:
    """Severity, and the direction of the break in the message."""
    return f"{row.severity}: {row.metrics['breaks']}"


_SCHEMA = pa.schema(
    {
        **{name: pa.string() for name in ("resource", "cluster", "topic", "application_id", "store")},
        "partition": pa.int32(),
        **{name: pa.int64() for name in ("log_start_offset", "hour_start_offset", "log_end_offset", "offset")},
        "at": pa.timestamp("us", "UTC"),
        "position": pa.int64(),
        "key": pa.binary(),
        "value": pa.binary(),
    }
)


def _write(fleet: Fleet, chosen: list[Case], file: Path) -> None:
    """The log of each case in the layout of the source: rows per partition and rows per record."""
    known: dict[tuple[str, int], bytes] = {}
    with pq.ParquetWriter(file, _SCHEMA) as writer:
        for case in chosen:
            store = fleet.stores[case.resource_name]
            minute = (case.hour + HOUR - START) / timedelta(minutes=1)
            there = store.survivors(minute)
            for write in there.tolist():
                if (case.resource_name, write) not in known:
                    known[case.resource_name, write] = store.value(write)
            milliseconds = ((START + case.shift).timestamp() * 1000 + store.times[there] * 60_000).astype(np.int64)
            partition = store.written[there] % PARTITIONS
            end, begun = len(store.times), int(np.searchsorted(store.times, minute - 60))
            head = {
                "resource": f"{CLUSTER}/{case.name}",
                "cluster": CLUSTER,
                "topic": case.name,
                "application_id": case.resource_name.split("-")[0],
                "store": case.resource_name.removesuffix("-changelog").split("-", 1)[1],
            }
            logs = [
                head | {"partition": p, "log_start_offset": 0, "hour_start_offset": begun, "log_end_offset": end}
                for p in range(PARTITIONS)
            ]
            writer.write_table(pa.Table.from_pylist(logs, schema=_SCHEMA))
            count = len(there)
            columns = {
                **{name: pa.array([value] * count) for name, value in head.items()},
                "partition": pa.array(partition, pa.int32()),
                "offset": pa.array(there),
                "at": pa.array(milliseconds * 1000).cast(pa.timestamp("us", "UTC")),
                "position": pa.array((milliseconds << 20) | (partition * 7919 + there) % (1 << 20)),
                "key": pa.array([f"k-{key}".encode() for key in store.written[there].tolist()]),
                "value": pa.array([known[case.resource_name, write] for write in there.tolist()]),
            }
            arrays = [
                columns.get(n, pa.nulls(count, t)).cast(t) for n, t in zip(_SCHEMA.names, _SCHEMA.types, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=_SCHEMA))

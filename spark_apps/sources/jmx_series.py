"""One matcher from series in the Prometheus exposition format to metrics of the catalog.

An index maps the letters and digits of a name to attributes of MBEANS (`spark_apps.sources.series_forms`) and to the
tables of exporters that have names of their own (`spark_apps.sources.known_series`). Labels decide between meanings.

- A series that fits attributes of two MBeans is not read; it is reported as a clash.
- Two names for the same reading are never added up. The more complete name counts; different values are a clash.
- A metric that MBeans have is not read from a table, and a metric of one table is not read from the next one.
- A label that is not a key property of the MBean, such as Thanos' replica label of a highly available pair, does not
  make another MBean: series that differ only in such labels are one reading.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import NamedTuple

from spark_apps.sources.heap_pools import of_whole_heap
from spark_apps.sources.jmx_mbeans import MBean, Reading, Role
from spark_apps.sources.jmx_metrics import METRICS
from spark_apps.sources.jmx_readings import beans_of, key_properties, sums_of
from spark_apps.sources.known_series import (
    CONTAINER,
    NODE_SERIES,
    RESIDENT,
    SERIES,
    STARTED,
    TABLES,
    UPTIME,
    Series,
    Table,
)
from spark_apps.sources.series_forms import bare, forms_of, queries_of, squashed

Labels = tuple[tuple[str, str], ...]
OBJECT_NAME = "_objectname"
_OBJECT = re.compile(r"([^<]+)<([^=<>]+)=(.*)><(.*)>(.*)")
_FURTHER_KEY = re.compile(r", ([A-Za-z][\w-]*)=")
_UNLIKE = 0.05
"""Relative difference of one attribute's values under two names that makes a clash; values change while an exporter
writes its page."""


@dataclass(frozen=True)
class Family:
    """Series that belong together: of one MBean, or of one entry of a table."""

    table: Table
    bean: MBean
    """Its key properties are written as `bare` does."""
    keys: frozenset[str]
    """Labels that distinguish MBeans."""
    pool: str | None = None
    """As in Series."""


@dataclass(frozen=True)
class Meaning:
    """What a series with a given name is, if its labels match."""

    family: int
    """Index of the family."""
    attribute: str
    where: Mapping[str, str]
    rank: int
    implied: Mapping[str, str]
    subject: str
    """The MBean's domain, type and name; of a table's entry its name."""
    number: str | None = None
    """The label that holds the value, where the series itself is 1."""

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether a series with these labels matches."""
        return all(
            (key not in labels) if value == "" else key in labels and value in ("*", labels[key])
            for key, value in self.where.items()
        )


@dataclass(frozen=True, eq=False)
class Names:
    """All series to read in one sample, by the letters and digits of their names."""

    families: tuple[Family, ...]
    meanings: Mapping[str, tuple[Meaning, ...]]
    hints: Mapping[str, re.Pattern[str]]
    """By name: text that a matching line contains; labels of other lines need not be parsed."""
    queries: frozenset[tuple[str, str]]
    """Regular expressions for a Prometheus server that match all names, and few others; see `rendered`."""


@cache
def names_of(role: Role, sample: int, samples: int) -> Names:
    """Series to read in sample number `sample` (from 0) of `samples`."""
    families: list[Family] = []
    meanings: dict[str, list[Meaning]] = defaultdict(list)
    beans = beans_of(role, sample, samples)
    for bean in beans:
        _add_bean(bean, families, meanings)
    wanted = {STARTED, UPTIME, RESIDENT, *CONTAINER.values()} | {
        reading.metric for bean in beans for reading in bean.readings
    }
    series = [one for one in SERIES if one.reading.metric in wanted] if beans else list(NODE_SERIES)
    for one in series:
        _add_series(one, families, meanings)
    hints = {name: [_hint(meaning) for meaning in of_name] for name, of_name in meanings.items()}
    return Names(
        tuple(families),
        {name: tuple(of_name) for name, of_name in meanings.items()},
        {name: re.compile("|".join(dict.fromkeys(words)) if all(words) else "") for name, words in hints.items()},
        frozenset().union(*map(queries_of, beans), *(one.queries for one in series)),
    )


def _add_bean(bean: MBean, families: list[Family], meanings: dict[str, list[Meaning]]) -> None:
    written = _written(bean)
    keys = {*written.labels, *written.without, *written.parts, *map(bare, key_properties(bean.pattern))}
    own = frozenset(keys - ({"type", "name"} if ",name=" in bean.pattern else {"type"}))
    sums = tuple(Reading("Sum", each.metric, each.factor) for each in bean.readings if each.times)
    place = {False: len(families), True: len(families) + 1}
    families.append(Family("mbean", written, own))
    if sums:
        families.append(Family("mbean", replace(written, readings=sums), own))
    subject = ",".join(part for part in bean.pattern.split(",") if "=*" not in part)
    for form in forms_of(bean):
        meaning = Meaning(place[form.attribute == "Sum"], form.attribute, form.where, form.rank, form.implied, subject)
        for name in form.names():
            if meaning not in meanings[name]:
                meanings[name].append(meaning)


def _add_series(series: Series, families: list[Family], meanings: dict[str, list[Meaning]]) -> None:
    bean = MBean(series.name, (series.reading,), (), series.labels, series.constant, parts=series.parts)
    written = _written(bean)
    where = {bare(key): value for key, value in series.where.items()}
    for name, attribute in series.attributes.items():
        meaning = Meaning(len(families), attribute, where, 0, {}, series.name, series.number)
        meanings[squashed(name)].append(meaning)
    pool = bare(series.pool) if series.pool else None
    families.append(Family(series.table, written, frozenset({*written.labels, *written.parts, *where}), pool))


def _written(bean: MBean) -> MBean:
    """With key properties in the form in which labels are compared."""
    return replace(
        bean,
        labels={bare(key): label for key, label in bean.labels.items()},
        without=tuple(map(bare, bean.without)),
        parts=tuple(map(bare, bean.parts)),
    )


def _hint(meaning: Meaning) -> str:
    """The beginning of a label's value, or an empty text."""
    return next((re.escape(f'"{value}') for value in meaning.where.values() if value not in ("*", "")), "")


class _Fit(NamedTuple):
    """What a series is."""

    family: int
    attribute: str
    own: Labels
    """Labels that distinguish MBeans."""
    by: Labels
    """Labels of the scraper."""
    out: Labels
    """Labels of ours."""
    rank: int
    value: float | None
    """Its value where a label has it."""


class _Unclear(NamedTuple):
    """A series that fits several attributes."""

    subjects: tuple[str, ...]


@lru_cache(maxsize=2**17)
def _fits(names: Names, name: str, labels: Labels) -> tuple[_Fit, ...] | _Unclear:
    """Meanings of a series; `name` as written by `squashed`. Cached: all brokers of a cluster have the same series."""
    name, labels = _by_object_name(name, labels)
    labels = _parted(labels)
    by_key = {bare(key): value for key, value in labels}
    holding = [meaning for meaning in names.meanings.get(name, ()) if meaning.holds(by_key)]
    of_beans = [meaning for meaning in holding if names.families[meaning.family].table == "mbean"]
    if of_beans:
        least = min(meaning.rank for meaning in of_beans)
        of_beans = [meaning for meaning in of_beans if meaning.rank == least]
        subjects = {f"{meaning.subject} {meaning.attribute}" for meaning in of_beans}
        if len(subjects) > 1:
            return _Unclear(tuple(sorted(subjects)))
    tables = [meaning for meaning in holding if names.families[meaning.family].table != "mbean"]
    return tuple(_fit(names.families[meaning.family], meaning, labels) for meaning in (*of_beans, *tables))


def _parted(labels: Labels) -> Labels:
    """Splits labels into which a greedy rule merged several key properties: `request="Produce, error=NONE"`."""
    parted: list[tuple[str, str]] = []
    for key, value in labels:
        if not value:
            continue  # to Prometheus, an empty label is an absent one
        first, *others = _FURTHER_KEY.split(value) if ", " in value else [value]
        parted += [(key, first), *zip(others[::2], others[1::2], strict=True)]
    return tuple(parted)


def _by_object_name(name: str, labels: Labels) -> tuple[str, Labels]:
    """The name that the exporter uses without rules, and all key properties, from the label `_objectname`.

    Exporters since 1.0 add this label where rules give two series the same name and labels.
    """
    full = next((_OBJECT.fullmatch(value) for key, value in labels if key == OBJECT_NAME), None)
    if not full:
        return name, labels
    domain, key, rest, item, attribute = full.groups()
    (_, kind), *others = _parted(((key, rest),))
    scraped_by = tuple(label for label in labels if label[0] != OBJECT_NAME)
    return squashed(f"{domain}_{kind}_{item}_{attribute}"), tuple(dict((*scraped_by, *others)).items())


def _fit(family: Family, meaning: Meaning, labels: Labels) -> _Fit:
    by_key = {bare(key): value for key, value in labels}
    by = tuple(
        sorted(label for label in labels if (key := bare(label[0])) not in family.keys and key not in meaning.where)
    )
    own = {key: value for key, value in by_key.items() if key in family.keys} | dict(meaning.implied)
    out = {label: own[key] for key, label in family.bean.labels.items() if key in own}
    return _Fit(
        meaning.family,
        meaning.attribute,
        tuple(sorted(own.items())),
        by,
        tuple(sorted(out.items())),
        meaning.rank,
        _number(by_key[bare(meaning.number)]) if meaning.number else None,
    )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


_Attributes = dict[str, float]


class Clash(NamedTuple):
    """Series that could be read in two ways."""

    names: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        return f"{' and '.join(self.names)}: {self.reason}"


def readings_of(
    names: Names, found: Iterable[tuple[str, Labels, float]], clashes: list[Clash] | None = None
) -> Iterator[tuple[str, dict[str, str], float | None]]:
    """Metric, labels, and value from series (name, labels, value).

    Of series that differ only in the scraper's labels, the newest comes last. Ambiguous series are left out and
    appended to `clashes`.
    """
    scraped = _scraped(names, found, [] if clashes is None else clashes)
    table_of: dict[str, Table] = {}
    seen: set[tuple[str, Labels]] = set()
    for table in TABLES:
        for family, of_family in zip(names.families, scraped, strict=True):
            if family.table != table or not of_family:
                continue
            beans = [(dict(own), _one_of(family.bean, list(by.values()))) for own, by in of_family.items()]
            beans = of_whole_heap(family.bean.readings[0].metric, family.pool, beans) if family.pool else beans
            for metric, labels, total in sums_of(family.bean, beans):
                series = (metric, tuple(labels.items()))
                if table_of.setdefault(metric, table) == table and series not in seen:
                    seen.add(series)
                    yield metric, labels, total


_Scraped = dict[Labels, dict[Labels, _Attributes]]


def _scraped(names: Names, found: Iterable[tuple[str, Labels, float]], clashes: list[Clash]) -> list[_Scraped]:
    """Values by family, MBean, scraper, and attribute; of an attribute exposed under several names, those of one."""
    by_name: dict[tuple[int, str], dict[tuple[int, str], list[_Found]]] = {}
    unclear: dict[str, _Unclear] = {}
    for name, labels, value in found:
        fits = _fits(names, squashed(name), labels)
        if isinstance(fits, _Unclear):
            unclear[name] = fits
            continue
        for fit in fits:
            series = by_name.setdefault((fit.family, fit.attribute), {}).setdefault((fit.rank, name), [])
            series.append((fit, value if fit.value is None else fit.value))
    clashes += [Clash((name,), f"fits {' and '.join(fits.subjects)}") for name, fits in unclear.items()]
    scraped: list[_Scraped] = [{} for _ in names.families]
    for (family, attribute), names_of_it in by_name.items():
        of_family = scraped[family]
        for fit, value in _of_one_name(names_of_it, clashes):
            of_family.setdefault(fit.own, {}).setdefault(fit.by, {})[attribute] = value
    return scraped


_Found = tuple[_Fit, float]


def _of_one_name(by_name: dict[tuple[int, str], list[_Found]], clashes: list[Clash]) -> Iterable[_Found]:
    """Of the series of one attribute, by rank and name, those of one name for each set of our labels."""
    if len(by_name) == 1:
        return next(iter(by_name.values()))
    chosen: dict[Labels, dict[str, list[_Found]]] = {}
    for (_, name), series in sorted(by_name.items()):
        for one in series:
            chosen.setdefault(one[0].out, {}).setdefault(name, []).append(one)
    unlike: dict[tuple[str, str], None] = {}
    for of_names in chosen.values():
        (best, kept), *others = of_names.items()
        unlike |= {(best, other): None for other, series in others if _differ(kept, series)}
    clashes += [Clash(pair, "different values of the same attribute") for pair in unlike]
    return [one for of_names in chosen.values() for one in next(iter(of_names.values()))]


def _differ(some: list[_Found], others: list[_Found]) -> bool:
    """Whether series of two names disagree on the same readings."""
    of_some, of_others = ({fit.own: value for fit, value in series} for series in (some, others))
    return of_some.keys() != of_others.keys() or not all(
        math.isclose(value, of_others[own], rel_tol=_UNLIKE) or not math.isfinite(value + of_others[own])
        for own, value in of_some.items()
    )


def replicas_in(names: Names, found: Iterable[tuple[str, Labels, float]]) -> dict[str, set[str]]:
    """Labels in which series of one reading differ, and their values: they identify the replicas."""
    scraped: dict[tuple[int, str, Labels], list[dict[str, str]]] = {}
    for name, labels, _ in found:
        fits = _fits(names, squashed(name), labels)
        for fit in () if isinstance(fits, _Unclear) else fits:
            scraped.setdefault((fit.family, fit.attribute, fit.own), []).append(dict(fit.by))
    differing: dict[str, set[str]] = {}
    for replicas in scraped.values():
        for label in {label for one in replicas for label in one}:
            if len(values := {one.get(label, "") for one in replicas}) > 1:
                differing.setdefault(label, set()).update(values)
    return differing


def _one_of(bean: MBean, replicas: list[_Attributes]) -> _Attributes:
    """The reading of an MBean with several scrapes: the one with the highest counter, otherwise the newest."""
    if len(replicas) == 1:
        return replicas[0]
    counters = [r.attribute for r in bean.readings if METRICS.get(r.metric) == "counter" and not r.times]

    def counted(attributes: _Attributes) -> float:
        return sum(value for name in counters if math.isfinite(value := attributes.get(name, 0)))

    known = [{name: value for name, value in one.items() if not math.isnan(value)} for one in replicas]
    one: _Attributes = {}
    for each in [*replicas, *sorted(known, key=counted)]:
        one |= each
    return one

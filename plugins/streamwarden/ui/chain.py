"""The chain of an incident as a graph: its resources in columns, from the root cause to the last downstream effect."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from streamwarden.rendering.readable import SEVERITIES, clean
from streamwarden.store.queries import Row
from streamwarden.ui.links import KIND_LABELS, display_name

WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 190, 46, 46, 12, 4
"""Size of a box, and the gaps between boxes, in pixels."""
MAX_ROWS, MAX_COLUMNS, MAX_CHARACTERS = 6, 8, 25


@dataclass(frozen=True)
class Box:
    """A resource, or the further resources of its column. `css`: its severity, or `calm`."""

    x: int
    y: int
    name: str
    note: str
    css: str
    title: str


@dataclass(frozen=True)
class Chain:
    """Boxes, the curves between them as SVG paths, the size in pixels, and the same as text."""

    boxes: list[Box]
    curves: list[str]
    width: int
    height: int
    label: str


def chain(members: Sequence[Row], weighed: Iterable[Row]) -> Chain | None:
    """The graph of an incident; None if fewer than two resources are known.

    Args:
        members: rows of `pages/incident`, the root first.
        weighed: rows of `pages/incident_weighed`; accepted pairs have the path from the cause to where it acts.
    """
    places = {row["fingerprint"]: row["resource"] for row in members if row["resource"]}
    root = members[0]["resource"]
    links = _links(members, weighed, places)
    if root is None or not links:
        return None
    columns = _columns(root, links)
    severities = _severities(members)
    boxes = {key: box for number, keys in enumerate(columns) for key, box in _column(number, keys, severities).items()}
    drawn = {(boxes[one], boxes[other]) for one, other in links if one in boxes and other in boxes}
    curves = [_curve(one, other) for one, other in sorted(drawn, key=lambda pair: (pair[0].x, pair[0].y, pair[1].y))]
    unique = list(dict.fromkeys(boxes.values()))
    return Chain(
        unique, curves,
        max(box.x for box in unique) + WIDTH + MARGIN, max(box.y for box in unique) + HEIGHT + MARGIN,
        _label(columns, severities),
    )  # fmt: skip


def _links(members: Sequence[Row], weighed: Iterable[Row], places: Mapping[str, str]) -> set[tuple[str, str]]:
    """Pairs of neighbors on the paths from causes to their effects. Findings linked manually follow the root."""
    links: set[tuple[str, str]] = set()
    explained = set()
    for row in weighed:
        if row["is_accepted"] and row["cause"] in places and row["effect"] in places:
            explained.add(row["effect"])
            path = [places[row["cause"]], *(row["path"] or []), places[row["effect"]]]
            links |= {(one, other) for one, other in pairwise(path) if one != other}
    root = places.get(members[0]["fingerprint"])
    for row in members[1:]:
        place = places.get(row["fingerprint"])
        if root and place and row["fingerprint"] not in explained and place != root:
            links.add((root, place))
    return links


def _columns(root: str, links: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Resources by their number of links from the root, at most `MAX_COLUMNS`."""
    following: dict[str, list[str]] = {}
    for one, other in sorted(links):
        following.setdefault(one, []).append(other)
    depths, waiting = {root: 0}, deque([root])
    while waiting:
        here = waiting.popleft()
        for other in following.get(here, []):
            if other not in depths and depths[here] + 1 < MAX_COLUMNS:
                depths[other] = depths[here] + 1
                waiting.append(other)
    columns: list[list[str]] = [[] for _ in range(max(depths.values()) + 1)]
    for key, depth in depths.items():
        columns[depth].append(key)
    return columns


def _severities(members: Sequence[Row]) -> dict[str, str]:
    """The worst severity of the findings of each resource; `calm` if all of them are resolved."""
    worst: dict[str, str] = {}
    for row in members:
        if row["resource"]:
            here = "calm" if row["resolved_hour"] else row["severity"]
            worst[row["resource"]] = min(worst.get(row["resource"], here), here, key=_rank)
    return worst


def _rank(severity: str) -> int:
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


def _column(number: int, keys: Sequence[str], severities: Mapping[str, str]) -> dict[str, Box]:
    """The boxes of a column by key, worst first; those beyond `MAX_ROWS` share the last one."""
    order = sorted(keys, key=lambda key: (_rank(severities.get(key, "calm")), key not in severities, key))
    x = MARGIN + number * (WIDTH + GAP_X)
    rows = len(order) if len(order) <= MAX_ROWS else MAX_ROWS - 1
    boxes = {key: _box(x, row, key, severities) for row, key in enumerate(order[:rows])}
    if rest := order[rows:]:
        css = severities.get(rest[0], "calm")
        y = MARGIN + rows * (HEIGHT + GAP_Y)
        boxes |= dict.fromkeys(rest, Box(x, y, f"and {len(rest)} more", "listed below", css, ""))
    return boxes


def _box(x: int, row: int, key: str, severities: Mapping[str, str]) -> Box:
    name, kind = clean(display_name(key)), KIND_LABELS.get(key.partition(":")[0], ("resource", ""))[0]
    shown = name if len(name) <= MAX_CHARACTERS else f"{name[: MAX_CHARACTERS - 1]}…"
    return Box(x, MARGIN + row * (HEIGHT + GAP_Y), shown, f"{kind}: {_state(key, severities)}",
               severities.get(key, "none"), f"{kind} {name}")  # fmt: skip


def _state(key: str, severities: Mapping[str, str]) -> str:
    return {None: "no finding", "calm": "resolved"}.get(severities.get(key), severities.get(key) or "")


def _curve(one: Box, other: Box) -> str:
    """A curve from the right edge of a box to the left edge of another; back over the boxes if that is on its left."""
    x1, y1, x2, y2 = one.x + WIDTH, one.y + HEIGHT // 2, other.x, other.y + HEIGHT // 2
    middle = (x1 + x2) // 2 if x2 > x1 else x1 + GAP_X // 2
    return f"M{x1},{y1} C{middle},{y1} {middle},{y2} {x2 - 5},{y2}"


def _label(columns: Sequence[Sequence[str]], severities: Mapping[str, str]) -> str:
    """The graph as text: each column with its resources."""
    steps = []
    for keys in columns:
        names = [f"{clean(display_name(key))} ({_state(key, severities)})" for key in keys[:MAX_ROWS]]
        more = f" and {len(keys) - MAX_ROWS} more" if len(keys) > MAX_ROWS else ""
        steps.append(", ".join(names) + more)
    return f"Chain from the root cause: {'; then '.join(steps)}."

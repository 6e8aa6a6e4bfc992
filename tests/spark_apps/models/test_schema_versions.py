"""Schema versions from literal JSON: changes, breaking changes, and decoys."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from spark_apps.models.json_shapes import Maps, paths_of, render
from spark_apps.models.schema_courses import BUCKETS
from spark_apps.models.schema_report import Exemplar, Report, masked, one_row_each
from spark_apps.models.schema_transitions import Change
from spark_apps.models.schema_versions import Profile, ShapeCount


def coincidence_probability(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 — test data


def shape(value: Any) -> str:
    """The result of Spark's `schema_of_variant` for a value; apps/test_state_stores.py checks that both are equal."""
    if isinstance(value, dict):
        fields = ", ".join(f"`{key}`: {shape(value[key])}" for key in sorted(value))
        return f"OBJECT<{fields}>"
    if isinstance(value, list):
        inner = {shape(item) for item in value}
        return f"ARRAY<{'VOID' if not inner else inner.pop() if len(inner) == 1 else 'VARIANT'}>"
    names = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", str: "STRING", type(None): "VOID"}
    return names[type(value)]


def profile(values: Iterable[Any]) -> Profile:
    """The profile of values in write order; a str is a shape that is not JSON."""
    shapes = [value if isinstance(value, str) else shape(value) for value in values]
    counts: dict[tuple[int, str], list[int]] = {}
    for i, text in enumerate(shapes):
        counts.setdefault((i * BUCKETS // len(shapes), text), []).append(i)
    return Profile([ShapeCount(b, text, len(at), at[0], at[-1]) for (b, text), at in counts.items()])


def changes(values: Iterable[Any]) -> list[tuple[str, str]]:
    return [(render(change.path), change.change) for change in profile(values).changes]


def only_change(values: Iterable[Any]) -> Change:
    [change] = profile(values).changes
    return change


def breaking(values: Iterable[Any]) -> list[tuple[str, str]]:
    """Changes that break lenient readers: only these can fire."""
    return [
        (render(change.path), change.change)
        for change in profile(values).changes
        if (change.breaks.backward or change.breaks.forward) and not change.breaks.strict_only
    ]


def test_types_that_are_replaced_together_are_one_row() -> None:
    """Strings and booleans alternate, objects follow: the warehouse keeps one row per path, change, and version."""
    values = [{"a": "on" if i % 2 else True} if i < 500 else {"a": {"is": "on"}} for i in range(1000)]
    rows = Report(profile(values), {}, show_values=False).change_rows()
    at_a = [row for row in rows if row["path"] == "$.a" or row["path"] == "a"]
    assert [row["change"] for row in at_a] == ["type_changed", "type_changed"]
    merged = one_row_each(rows)
    keys = [(row["path"], row["change"], row["old_version"], row["new_version"]) for row in merged]
    assert len(keys) == len(set(keys))
    [row] = [row for row in merged if row["change"] == "type_changed"]
    assert (row["old_type"], row["old_count"], row["new_type"], row["new_count"]) == (
        "boolean, string", 500, "object", 500,
    )  # fmt: skip
    assert (row["breaks_backward"], row["breaks_forward"], row["strict_only"]) == (True, True, False)


def test_new_constants_of_one_release_keep_the_count_of_values_without_them() -> None:
    row = {"path": "$.a", "change": "constant_added", "old_version": 1, "new_version": 1, "old_type": None,
           "breaks_backward": False, "breaks_forward": True, "strict_only": True}  # fmt: skip
    rows = [
        row | {"new_type": "new", "old_count": 700, "new_count": 40},
        row | {"new_type": "paid", "old_count": 600, "new_count": 150},
    ]
    [merged] = one_row_each(rows)
    assert (merged["new_type"], merged["old_count"], merged["new_count"]) == ("new, paid", 600, 190)


def test_a_single_change_is_reported_unmerged() -> None:
    rows = Report(profile([{"a": 1} if i < 500 else {"a": "x"} for i in range(1000)]), {}, show_values=False)
    assert one_row_each(rows.change_rows()) == rows.change_rows()


# The published rules: what new code cannot restore, and what old code cannot read.


def always(value: Any) -> Callable[[int], Any]:
    return lambda i: {"id": i, "a": value}


def every(n: int, value: Any, otherwise: Callable[[int], Any]) -> Callable[[int], Any]:
    return lambda i: {"id": i, "a": value} if i % n == 0 else otherwise(i)


def never(i: int) -> Any:
    return {"id": i}


RESTORE, ROLLBACK, BOTH, NOTHING = (True, False), (False, True), (True, True), (False, False)
"""What breaks: new code restoring old state (BACKWARD), old code reading new state (FORWARD)."""
OF_ONE_TYPE = ["x", 1, True, {"b": 1}, [1]]
RULES = {
    "nothing": (always("x"), always("y"), NOTHING, NOTHING),
    "required field added": (never, always("x"), RESTORE, RESTORE),
    "optional field added": (never, every(2, "x", never), NOTHING, ROLLBACK),
    "required field removed": (always("x"), never, ROLLBACK, ROLLBACK),
    "optional field removed": (every(2, "x", never), never, NOTHING, RESTORE),
    "made optional": (always("x"), every(2, "x", never), ROLLBACK, ROLLBACK),
    "made required": (every(2, "x", never), always("x"), NOTHING, RESTORE),
    **{f"{type(old).__name__} to {type(new).__name__}": (always(old), always(new), BOTH, BOTH)
       for old in OF_ONE_TYPE for new in OF_ONE_TYPE if old is not new},
    "integer widened to number": (always(1), always(1.5), NOTHING, ROLLBACK),
    "number narrowed to integer": (always(1.5), always(1), RESTORE, RESTORE),
    "widened to a union": (always("x"), every(2, 1, always("x")), ROLLBACK, ROLLBACK),
    "narrowed from a union": (every(2, 1, always("x")), always("x"), RESTORE, RESTORE),
    "nullability gained": (always("x"), every(3, None, always("x")), ROLLBACK, ROLLBACK),
    "nullability lost": (every(3, None, always("x")), always("x"), RESTORE, RESTORE),
    "null only": (always("x"), always(None), ROLLBACK, ROLLBACK),
    "nested field added": (always({"b": 1}), always({"b": 1, "c": 1}), RESTORE, RESTORE),
    "nested field removed": (always({"b": 1, "c": 1}), always({"b": 1}), ROLLBACK, ROLLBACK),
    "elements changed": (always([1]), always(["x"]), BOTH, BOTH),
    "empty arrays filled": (always([]), always([1]), NOTHING, NOTHING),
    "values of a map changed": (
        lambda i: {"a": {f"k{i}": 1}}, lambda i: {"a": {f"k{i}": "x"}}, BOTH, BOTH
    ),
    "new keys of a map": (lambda i: {"a": {f"k{i}": 1}}, lambda i: {"a": {f"k{i + 5000}": 1}}, NOTHING, NOTHING),
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_the_published_rules(rule: tuple[Any, Any, tuple[bool, bool], tuple[bool, bool]]) -> None:
    old, new, lenient, strict = rule
    found = profile([*map(old, range(600)), *map(new, range(600, 1200))]).changes
    for readers, broken in ((False, lenient), (True, strict)):
        breaks = [change.breaks for change in found if readers or not change.breaks.strict_only]
        assert (any(each.backward for each in breaks), any(each.forward for each in breaks)) == broken


# What breaks.


@pytest.mark.parametrize("kinds", [(1, "1"), ("a", True), (1.5, "a"), ({"x": 1}, "a"), ([1], {"x": 1}), (True, 1)])
def test_a_type_change_breaks_both_directions(kinds: tuple[Any, Any]) -> None:
    old, new = kinds
    change = only_change([{"f": old}] * 300 + [{"f": new}] * 200)
    assert (render(change.path), change.change) == ("$.f", "type_changed")
    assert change.breaks == (True, True, False)
    old_values, new_values = change.old.kind, change.new.kind
    assert (old_values.total, new_values.total, old_values.last, new_values.first) == (300, 200, 299, 300)


def test_a_removed_required_field_breaks_rollback_only() -> None:
    change = only_change([{"a": 1, "b": "x"}] * 300 + [{"a": 1}] * 300)
    assert (render(change.path), change.change) == ("$.b", "field_removed")
    assert (change.breaks.backward, change.breaks.forward) == (False, True)


def test_an_added_required_field_breaks_restore_only() -> None:
    change = only_change([{"a": 1}] * 300 + [{"a": 1, "b": "x"}] * 300)
    assert (render(change.path), change.change) == ("$.b", "field_added")
    assert (change.breaks.backward, change.breaks.forward) == (True, False)


@pytest.mark.parametrize("with_it", [49, 99])
def test_a_field_with_few_values_so_far_is_not_reported_as_required(with_it: int) -> None:
    """An optional field that nearly all values have looks required until one value omits it."""
    old, new = {"a": 1}, {"a": 1, "b": "x"}
    deployed = [new if i % 3 == 0 else old for i in range(60)]  # old and new releases side by side
    for log in ([old] * 900 + [new] * with_it, [old] * 900 + deployed + [new] * (with_it - 20)):
        change = only_change(log)
        assert (change.change, change.breaks.strict_only) == ("optional_field_added", True)
    assert only_change([old] * 900 + [new] * 100).change == "field_added"


@pytest.mark.parametrize(("since", "expected"), [(300, []), (450, [("$.a", "field_made_required")])])
def test_an_optional_field_missing_by_chance_is_not_reported_as_ended(
    since: int, expected: list[tuple[str, str]]
) -> None:
    """45 of 800 values omit the field, then none does. In 300 values chance explains that once in 10⁶ fields."""
    before = [never(i) if i % 18 == 9 else always("x")(i) for i in range(810)]
    assert changes(before[:802] + [always("x")(i) for i in range(since)]) == expected


def test_alternating_types_are_not_reported_as_ended() -> None:
    """Alternating runs of which compaction has left a few values each: a pause of that length is not significant."""
    turns = [always("x") if i // 9 % 2 else never for i in range(300)] + [always("x")] * 150
    assert changes(each(i) for i, each in enumerate(turns)) == []
    mixed = [always("x") if (i * 7) % 9 % 2 else never for i in range(300)] + [always("x")] * 150
    assert changes(each(i) for i, each in enumerate(mixed)) == [("$.a", "field_made_required")]


def test_nullability_gained_and_lost() -> None:
    nullable = [{"a": None if i % 5 == 0 else "x"} for i in range(500)]
    gained = only_change([{"a": "x"}] * 500 + nullable)
    assert (gained.change, gained.breaks.backward, gained.breaks.forward) == ("nullability_gained", False, True)
    lost = only_change(nullable + [{"a": "x"}] * 500)
    assert (lost.change, lost.breaks.backward, lost.breaks.forward) == ("nullability_lost", True, False)


def test_a_field_made_optional_by_one_release_breaks_rollback() -> None:
    values = [{"a": 1, "b": 1}] * 1000 + [{"a": 1} if i % 3 else {"a": 1, "b": 1} for i in range(1000)]
    assert breaking(values) == [("$.b", "field_made_optional")]


def test_a_type_narrowed_breaks_restore() -> None:
    change = only_change([{"a": 1 if i % 2 else "x"} for i in range(600)] + [{"a": "x"}] * 600)
    assert (change.change, change.breaks.backward, change.breaks.forward) == ("type_narrowed", True, False)


def test_a_nested_change_is_reported_by_its_own_path_only() -> None:
    old = {"order": {"items": [{"sku": 1, "a b": 1}]}}
    new = {"order": {"items": [{"sku": "1", "a b": 1}]}}
    assert changes([old] * 300 + [new] * 300) == [("$.order.items[].sku", "type_changed")]


def test_a_removed_object_is_reported_once_and_not_for_each_of_its_fields() -> None:
    assert changes([{"a": {"b": 1, "c": {"d": 2}}, "e": 1}] * 300 + [{"e": 1}] * 300) == [("$.a", "field_removed")]


def test_a_format_change_breaks_both_directions() -> None:
    found = profile([{"a": 1}] * 300 + ["FRAMED 7"] * 300)
    assert [(render(c.path), c.change, c.old.type, c.new.type) for c in found.changes] == [
        ("$", "type_changed", "object", "framed")
    ]
    assert found.format == "framed"
    assert found.readable_values == 300


def test_every_version_in_the_log_is_compared_with_the_newest() -> None:
    found = profile([{"a": 1}] * 300 + [{"a": "1"}] * 300 + [{"a": [1]}] * 300)
    assert found.newest_version == 3
    assert sorted((c.old.type, c.new.type, found.old_version(c)) for c in found.changes) == [
        ("integer", "array", 1),
        ("string", "array", 2),
    ]


def test_values_of_a_release_that_was_rolled_back_break_both_directions() -> None:
    change = only_change([{"a": 1}] * 300 + [{"a": "1"}] * 300 + [{"a": 1}] * 300)
    assert (change.change, change.old.type, change.new.type) == ("type_rolled_back", "string", "integer")
    assert (change.breaks.backward, change.breaks.forward) == (True, True)


@pytest.mark.parametrize("seed", range(5))
def test_a_version_of_a_thousandth_of_the_values_is_found_at_any_position(seed: int) -> None:
    chance = coincidence_probability(seed)
    new = [{"a": "x", "b": 1}] * 50_000
    old = {"a": 7, "b": 1}
    at_the_start = [old] * 50 + new
    assert breaking(at_the_start) == [("$.a", "type_changed")]
    assert breaking(new + [{"a": 7.5, "b": 1}] * 50) == [("$.a", "type_changed")]
    strewn = sorted(chance.sample(range(20_000), 50))  # remaining after compaction in the older part
    values = [old if i in set(strewn) else value for i, value in enumerate(new[:20_000])] + new[20_000:]
    assert [path for path, _ in breaking(values)] == ["$.a"]


def test_a_rolling_deploy_is_one_transition_between_two_versions() -> None:
    chance = coincidence_probability(3)
    old, new = {"a": 1, "b": "x"}, {"a": "1"}
    mixed = [new if chance.random() < i / 400 else old for i in range(400)]
    found = profile([old] * 2000 + mixed + [new] * 2000)
    assert found.newest_version == 2
    assert sorted((render(c.path), c.change) for c in found.changes) == [
        ("$.a", "type_changed"),
        ("$.b", "field_removed"),
    ]


# Decoys.


def optional_at_random(i: int, chance: random.Random) -> Any:
    return {"a": 1} | ({"coupon": "x"} if chance.random() < 0.3 else {})


def rare_optional(i: int, chance: random.Random) -> Any:
    return {"a": 1} | ({"note": "x"} if chance.random() < 0.004 else {})


def nearly_always(i: int, chance: random.Random) -> Any:
    return {"a": 1} | ({"note": "x"} if chance.random() < 0.99 else {})


def optional_in_campaigns(i: int, chance: random.Random) -> Any:
    return {"a": 1} | ({"coupon": "x"} if (i // 450) % 2 else {})


def map_of_customers(i: int, chance: random.Random) -> Any:
    return {"a": 1, "by": {f"c{chance.randrange(3000)}x": 1 for _ in range(chance.randrange(5))}}


def map_of_words(i: int, chance: random.Random) -> Any:
    words = ("alder", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine")
    keys = {f"{chance.choice(words)}-{chance.choice(words)}" for _ in range(3)}
    return {"a": 1, "by": {key: {"n": 1, "when": {str(chance.randrange(10**9)): 2}} for key in keys}}


def new_constants(i: int, chance: random.Random) -> Any:
    return {"status": chance.choice(("new", "paid") if i < 2000 else ("new", "paid", "refunded"))}


def integers_become_fractions(i: int, chance: random.Random) -> Any:
    return {"amount": 5 if i < 2000 else 5.5}


def whole_numbers_now_and_then(i: int, chance: random.Random) -> Any:
    return {"amount": 5 if chance.random() < 0.2 else 5.5}


def a_union_from_the_start(i: int, chance: random.Random) -> Any:
    return {"a": chance.choice((1, "x", None)), "b": [1] if chance.random() < 0.5 else []}


def an_optional_field_is_added(i: int, chance: random.Random) -> Any:
    return {"a": 1} | ({"coupon": "x"} if i > 2000 and chance.random() < 0.5 else {})


def a_rolling_deploy_adds_an_optional_field(i: int, chance: random.Random) -> Any:
    is_new = chance.random() < (i - 1500) / 1000
    return {"a": 1} | ({"coupon": "x"} if is_new and chance.random() < 0.6 else {})


def the_young_lack_what_comes_with_age(i: int, chance: random.Random) -> Any:
    # Compaction keeps the last state of each order: old orders are delivered, the newer the fewer are.
    return {"a": 1} | ({"delivered": "x"} if chance.random() > (i / 4000) ** 3 else {})


def a_few_slips(i: int, chance: random.Random) -> Any:
    return {"a": "oops" if i in (1000, 2000, 3990, 3999) else 1}


DECOYS: list[Callable[[int, random.Random], Any]] = [
    optional_at_random,
    rare_optional,
    nearly_always,
    optional_in_campaigns,
    map_of_customers,
    map_of_words,
    new_constants,
    integers_become_fractions,
    whole_numbers_now_and_then,
    a_union_from_the_start,
    an_optional_field_is_added,
    a_rolling_deploy_adds_an_optional_field,
    the_young_lack_what_comes_with_age,
    a_few_slips,
]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("decoy", DECOYS)
def test_decoys_break_nothing(decoy: Callable[[int, random.Random], Any], seed: int) -> None:
    chance = coincidence_probability(seed)
    assert breaking(decoy(i, chance) for i in range(4000)) == []


@pytest.mark.parametrize("count", [1, 3, 19, 60, 500])
def test_few_values_give_no_breaking_change(count: int) -> None:
    chance = coincidence_probability(1)
    assert breaking(optional_at_random(i, chance) for i in range(count)) == []


# Shapes.


def test_any_characters_in_keys_are_kept() -> None:
    text = "OBJECT<`a b`: BIGINT, `c:d`: ARRAY<VOID>, f: VOID, g: DECIMAL(2,1), h: DECIMAL(24,0), `m``n`: OBJECT<>>"
    found = {(render(path), kind) for path, kind in paths_of(text)}
    assert found == {
        ("$", "object"), ("$['a b']", "integer"), ("$['c:d']", "array"), ("$.f", "null"), ("$.g", "number"),
        ("$.h", "integer"), ("$['m`n']", "object"),
    }  # fmt: skip


def test_a_record_with_many_fields_is_not_a_map() -> None:
    wide = shape({f"field_{i}_name": i for i in range(200)})
    assert len(Maps([(wide, 100)]).paths(wide)) == 201


def test_paths_are_bounded_by_the_schema_where_objects_are_maps() -> None:
    chance = coincidence_probability(2)
    found = profile(map_of_words(i, chance) for i in range(4000))
    assert {render(path) for path in found.paths} == {
        "$",
        "$.a",
        "$.by",
        "$.by.*",
        "$.by.*.n",
        "$.by.*.when",
        "$.by.*.when.*",
    }


def test_hundreds_of_levels_are_handled() -> None:
    text = "OBJECT<a: " * 2000 + "BIGINT" + ">" * 2000
    assert paths_of(text) == (((), "object"),)


# The report.


def report(values: list[Any], *, show_values: bool) -> Report:
    import json

    exemplars = {i: Exemplar(0, i, json.dumps(value)) for i, value in enumerate(values)}
    return Report(profile(values), exemplars, show_values=show_values)


VALUES = [{"a": 1, "s": "red"}] * 300 + [{"a": "1", "s": "red"}] * 300


def test_examples_are_masked_unless_shown() -> None:
    [shown] = report(VALUES, show_values=True).change_rows()
    [hidden] = report(VALUES, show_values=False).change_rows()
    assert (shown["old_example"], shown["new_example"]) == ("1", '"1"')
    assert (hidden["old_example"], hidden["new_example"]) == ("9", '"9"')
    assert masked("Käse-17 b") == '"xxxx-99 x"'
    assert {row["enum_values"] for row in report(VALUES, show_values=False).path_rows()} == {None}


def test_values_that_postgresql_cannot_store_are_never_an_example() -> None:
    assert masked("\0\0a\x1b") == '"··x·"'
    for show_values in (False, True):
        found = report([{"s": "\0"}, {"s": "\ud800"}] * 300, show_values=show_values)
        (row,) = [row for row in found.path_rows() if row["path"] == "$.s"]
        assert row["enum_values"] is None and row["example"].isprintable() and row["example"].encode()


def test_counts_of_all_versions_add_up() -> None:
    rows = report(VALUES, show_values=True).path_rows()
    counted = Counter({(row["version"], row["path"], row["type"]): row["count"] for row in rows})
    assert counted[1, "$.a", "integer"] == counted[2, "$.a", "string"] == 300
    assert sum(count for (_, path, _), count in counted.items() if path == "$") == 600
    assert all(row["count"] == row["parents"] for row in rows)
    assert {tuple(row["enum_values"]) for row in rows if row["path"] == "$.s"} == {("red",)}


def _middle(value: dict[str, Any], other: dict[str, Any], every: int = 1) -> list[dict[str, Any]]:
    return [other if 400 <= i < 600 and i % every == 0 else value for i in range(1000)]


@pytest.mark.parametrize(
    ("values", "change"),
    [
        (_middle({"a": 1, "b": 1}, {"b": 1}), "field_rolled_back"),
        (_middle({"a": 1, "b": 1}, {"b": 1}, every=2), "field_rolled_back"),
        (_middle({"a": "x"}, {"a": None}, every=3), "nullability_rolled_back"),
        (_middle({"a": 1}, {"a": 1.5}, every=3), "fractions_rolled_back"),
    ],
)
def test_values_of_a_rolled_back_release_break_strict_readers(values: list[Any], change: str) -> None:
    found = only_change(values)
    assert (render(found.path), found.change) == ("$.a", change)
    assert found.breaks == (True, False, True)


def test_a_temporary_optional_field_is_not_a_release() -> None:
    assert breaking(_middle({"b": 1}, {"a": 1, "b": 1})) == []

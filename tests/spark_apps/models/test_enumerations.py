"""Constants that appeared or disappeared, and strings that only look like constants."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from spark_apps.models.enumerations import ConstantChange, constant_changes

PATH = (".state",)
KNOWN = ("new", "paid", "sent", "lost")


def found(state: Callable[[int, random.Random], Any], count: int = 1000) -> list[ConstantChange]:
    chance = random.Random(3)  # noqa: S311 a simulation
    return constant_changes({10 * i: {"state": state(i, chance)} for i in range(count)}, [PATH])


def test_a_new_constant_is_reported_with_its_offsets_and_counts() -> None:
    [change] = found(lambda i, chance: "held" if i >= 600 and i % 5 == 0 else chance.choice(KNOWN))
    assert change == ConstantChange(PATH, "held", True, 600, 80, 5990, 6000)


def test_a_new_constant_of_a_rolling_deploy_is_reported() -> None:
    """Some of the processes write the constant before the others."""
    rates = (0.0, 0.07, 0.3)
    [change] = found(lambda i, c: "held" if c.random() < rates[(i >= 700) + (i >= 820)] else c.choice(KNOWN))
    assert (change.constant, change.is_added) == ("held", True)


def test_a_constant_that_is_twice_as_frequent_in_one_half_by_chance_is_not_hidden() -> None:
    """6 of 109 values against 19 of 125 are 2.3 standard deviations; 38 are 4.4, and only new records have it."""

    def held(late: set[int]) -> Callable[[int, random.Random], str]:
        begins = {i for i in range(700, 760) if i % 6 == 0} | {i for i in range(770, 890) if i % 18 == 0}
        return lambda i, chance: "held" if i in begins | late else chance.choice(KNOWN)

    [change] = found(held({i for i in range(890, 1000) if i % 6 == 0}))
    assert (change.constant, change.is_added) == ("held", True)
    assert found(held({i for i in range(890, 1000) if i % 3 == 0})) == []


def test_a_removed_constant_is_reported() -> None:
    [change] = found(lambda i, chance: "held" if i < 600 and i % 5 == 0 else chance.choice(KNOWN))
    assert change == ConstantChange(PATH, "held", False, 120, 404, 5950, 5960)


def test_a_constant_of_a_release_that_was_rolled_back_is_reported_as_removed() -> None:
    [change] = found(lambda i, chance: "held" if 400 <= i < 600 and i % 5 == 0 else chance.choice(KNOWN))
    assert (change.constant, change.is_added, change.old_count) == ("held", False, 40)


def test_each_value_of_an_array_counts_once() -> None:
    values = {i: {"state": [*KNOWN, *(["held"] * 3 if i >= 600 else [])]} for i in range(1000)}
    [change] = constant_changes(values, [(".state", "[]")])
    assert (change.constant, change.new_count) == ("held", 400)


@pytest.mark.parametrize(
    "state",
    [
        lambda i, chance: chance.choice(KNOWN),
        lambda i, chance: chance.choice((*KNOWN[:2], "day" if i // 100 % 2 else "night")),  # alternates
        lambda i, chance: f"v{i // 120}",  # a label of each release
        lambda i, chance: chance.choice(("web", f"week {i // 120}")),
        lambda i, chance: f"c{chance.randrange(500)}" if i > 600 else chance.choice(KNOWN),  # too many to be constants
        lambda i, chance: "x" * 41 if i > 600 and i % 5 == 0 else chance.choice(KNOWN),  # free text
        lambda i, chance: "oops" if i in (700, 710, 720) else chance.choice(KNOWN),  # mistakes
        lambda i, chance: (
            "held" if chance.random() < max(i - 400, 0) / 1200 else chance.choice(KNOWN)
        ),  # slow drift with age
        lambda i, chance: i if i > 600 else chance.choice(KNOWN),  # a type change is reported as such
    ],
    ids=["steady", "by turns", "release", "campaign", "names", "text", "slips", "age", "type"],
)
def test_decoys(state: Callable[[int, random.Random], Any]) -> None:
    assert found(state) == []


def test_few_values_give_no_change() -> None:
    assert found(lambda i, chance: "held" if i >= 8 else KNOWN[i % 2], 16) == []
    assert constant_changes({}, [PATH]) == []

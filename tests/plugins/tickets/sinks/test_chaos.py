"""Random faults against every tracker: its issues are our tickets, their comments our changes, in order.

A run is killed before or after a request, requests never arrive or arrive late, answers are lost, cut off, of another
shape, or twice; searches lag. `make chaos PART=trackers N=1000` tries more and prints a table of what was tried.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from streamwarden.base.config import Config, Tickets
from streamwarden.base.errors import StreamwardenError
from streamwarden.tickets import deliver, listen
from streamwarden.tickets.reconcile import plan_change, update_ticket

from tests.plugins.tickets.endpoints.endpoint import FAULTS, MOST_LAG_MINUTES, Clock, Endpoint, Faulty, Killed
from tests.plugins.tickets.endpoints.kinds import KINDS, MAIL, opened
from tests.plugins.tickets.story import Story, hour

EXAMPLES = int(os.environ.get("CHAOS_EXAMPLES", "8"))
TICKETS = 3
ALL = KINDS | {"mail": MAIL}
CHANGE = st.tuples(st.integers(0, TICKETS - 1), st.integers(0, 5))
Tally = dict[str, dict[str, Counter[str]]]
_SAID = re.compile(r"change \d+ of ticket \d+")


@pytest.fixture(scope="module")
def tally() -> Iterator[Tally]:
    """Requests by tracker and the fault they met, changes by tracker and what came of them; kept for who asks."""
    counted: Tally = {"requests": {}, "changes": {}}
    yield counted
    if "CHAOS_TALLY" in os.environ:
        Path(os.environ["CHAOS_TALLY"]).write_text(json.dumps(counted), encoding="utf-8")


@pytest.fixture(scope="module")
def shared_story(module_warehouse: sa.Engine) -> Story:
    return Story(module_warehouse)


class Fleet:
    """Tickets in a warehouse, and what a tracker is to have of them."""

    def __init__(self, story: Story, tells_all: bool) -> None:
        self.story, self.tells_all, self.turn = story, tells_all, 0
        self.said: dict[int, list[str]] = {}
        self.is_open: dict[int, bool] = {}

    def plan(self, number: int, turn: int) -> None:
        """The next change of a ticket: first it is filed, then commented, closed and opened again."""
        with self.story.engine.begin() as connection:
            if number not in self.said:
                self.said[number], self.is_open[number] = [], True
                connection.execute(_TICKET, {"f": print_of(number), "title": f"Ticket {number}", "hour": hour(0)})
                action = "create"
            else:
                action = "comment" if turn % 3 else "close" if self.is_open[number] else "reopen"
            if action in ("close", "reopen"):
                self.is_open[number] = action == "reopen"
                state = "open" if self.is_open[number] else "closed"
                connection.execute(
                    sa.text("update tickets.ticket set state = :s where fingerprint = :f"),
                    {"s": state, "f": print_of(number)},
                )
            ticket_id = connection.execute(
                sa.text("select ticket_id from tickets.ticket where fingerprint = :f"), {"f": print_of(number)}
            ).scalar_one()
            self.turn += 1
            note = f"change {self.turn} of ticket {number}"
            if action == "create" or self.tells_all:
                self.said[number].append(note)
            answer: Any = "acknowledged" if action == "comment" and turn == 1 else None
            if answer:  # somebody said so on the page
                update_ticket(connection, ticket_id, acknowledged_by="Vera")
            plan_change(connection, ticket_id, action, hour(self.turn), note, answer=answer)  # type: ignore[arg-type]

    def must_be(self) -> dict[str, tuple[bool, list[str]]]:
        return {print_of(number): (self.is_open[number], said) for number, said in self.said.items()}


def print_of(number: int) -> str:
    """A fingerprint, which differs from its first figure on."""
    return f"{number}a" * 32


def found(endpoint: Endpoint) -> dict[str, tuple[bool, list[str]]]:
    """What the tracker has of each ticket; of one that was filed twice, all."""
    tickets: dict[str, tuple[bool, list[str]]] = {}
    for ticket in endpoint.tickets():
        texts = ticket.said[: None if endpoint.tells_all else 1]
        was_open, before = tickets.get(ticket.fingerprint, (False, []))
        said = [said for text in texts for said in _SAID.findall(text)]
        tickets[ticket.fingerprint] = was_open or ticket.is_open, before + said
    return tickets


def came_of_it(endpoint: Endpoint, fleet: Fleet) -> Counter[str]:
    """How many changes were lost, told twice or told out of order, and how many tickets are in another state."""
    came, tickets = Counter[str](), found(endpoint)
    for fingerprint, (is_open, must) in fleet.must_be().items():
        is_there, said = tickets.get(fingerprint, (is_open, []))
        lost, doubled = Counter(must) - Counter(said), Counter(said) - Counter(must)
        came.update({"told": len(must), "lost": lost.total(), "doubled": doubled.total()})
        came["out of order"] += not lost and not doubled and said != must
        came["another state"] += is_there != is_open
    return came


@pytest.mark.parametrize("kind", ALL)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    print_blob=True,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to shrink takes minutes
)
@given(
    turns=st.lists(st.lists(CHANGE, max_size=5), min_size=1, max_size=4),
    faults=st.lists(st.sampled_from(FAULTS), min_size=5, max_size=60),
    waits=st.lists(st.sampled_from([0, 0, 1, 4, 11, 60]), min_size=4, max_size=4),
    lag_minutes=st.sampled_from([0, 0, 1, MOST_LAG_MINUTES]),
)  # fmt: skip
@example(  # a question that failed made us forget that an answer was lost
    turns=[[(2, 0), (2, 1)], [(0, 3), (2, 1)], []],
    faults=[
        "never", "wrong after", "killed before", "doubled", "late", "cut", "doubled", "page after", "error before",
        "killed after", "late", "late", "no connection", "late", "wrong after", "killed after", "page after",
    ],
    waits=[0, 0, 1, 4],
    lag_minutes=4,
)  # fmt: skip
@example(  # a list that didn't show yet that we opened it again was taken for a person's closing
    turns=[[(0, 0)], [(0, 3)], [(0, 3)], []], faults=["fine"], waits=[11, 11, 0, 0], lag_minutes=MOST_LAG_MINUTES
)  # fmt: skip
def test_nothing_is_told_twice_and_nothing_is_lost(
    shared_story: Story, tally: Tally, kind: str, turns: list[list[tuple[int, int]]], faults: list[str],
    waits: list[int], lag_minutes: int,
) -> None:  # fmt: skip
    shared_story.clear()
    clock = Clock()
    endpoint_class, tracker = ALL[kind]
    endpoint = endpoint_class(clock, timedelta(minutes=lag_minutes))
    if endpoint.by_status_alone:  # a stranger's page can't be told from an answer
        faults = [fault for fault in faults if fault not in ("page before", "wrong before")]
    way = Faulty(endpoint, iter(faults), clock)
    config = Config(tickets=Tickets(trackers={"team": tracker}))
    fleet = Fleet(shared_story, endpoint.tells_all)

    def run() -> list[str]:
        sink = opened(tracker, way, clock)  # each run is a new process
        try:
            if sink.remembers:
                listen(shared_story.engine, sink, clock.now)
            failed = deliver(shared_story.engine, sink, config, lambda: clock.now).failed
        except StreamwardenError as error:  # the tracker is down: nothing is told in this run
            failed = [str(error)]
        except Killed:
            return ["killed"]
        assert all("\n" not in line and "s3cr3t" not in line for line in failed)
        return failed

    for turn, wait in zip(turns, waits, strict=False):
        for number, action in turn:
            fleet.plan(number, action)
        run()
        clock.pause(wait * 60)
    way.faults = itertools.repeat("fine")
    for _ in range(8):
        way.land()
        failed = run()
        clock.pause(11 * 60)
        if not failed:
            break
    assert failed == []
    way.land(all_of_it=True)
    tally["requests"].setdefault(kind, Counter()).update(way.met)
    tally["changes"].setdefault(kind, Counter(stories=0)).update({**came_of_it(endpoint, fleet), "stories": 1})
    assert found(endpoint) == fleet.must_be()
    assert shared_story.rows("select * from tickets.response") == [], "what we told isn't taken for what people said"
    assert run() == []
    assert found(endpoint) == fleet.must_be()


_TICKET = sa.text("""
    with ticket as (
      insert into tickets.ticket
        (fingerprint, detector, resource_name, identity, severity, title, state, opened_hour, last_firing_hour)
      values (:f, 'd', 'r', '{}', 'warning', :title, 'open', :hour, :hour)
      returning ticket_id
    )
    insert into tickets.issue (ticket_id, tracker) select ticket_id, 'team' from ticket""")

"""Random faults against every tracker: afterwards its issues equal our tickets, its comments our changes, in order.

A run is killed before or after a request; requests never arrive or arrive late; responses are lost, cut off, of
another shape, or sent twice; searches lag. `make chaos PART=trackers N=1000` runs more examples and prints the counts.
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
from tests.plugins.tickets.scenario import DeliveryScenario, hour

EXAMPLES = int(os.environ.get("CHAOS_EXAMPLES", "4"))
TICKETS = 3
ALL = KINDS | {"mail": MAIL}
CHANGE = st.tuples(st.integers(0, TICKETS - 1), st.integers(0, 5))
Tally = dict[str, dict[str, Counter[str]]]
_NOTE = re.compile(r"change \d+ of ticket \d+")


@pytest.fixture(scope="module")
def tally() -> Iterator[Tally]:
    """Requests by tracker and fault, changes by tracker and outcome; written to the file CHAOS_TALLY if it is set."""
    counted: Tally = {"requests": {}, "changes": {}}
    yield counted
    if "CHAOS_TALLY" in os.environ:
        Path(os.environ["CHAOS_TALLY"]).write_text(json.dumps(counted), encoding="utf-8")


@pytest.fixture(scope="module")
def shared_scenario(module_warehouse: sa.Engine) -> DeliveryScenario:
    return DeliveryScenario(module_warehouse)


class Fleet:
    """Tickets in a warehouse, and the notes and states that a tracker has to end with."""

    def __init__(self, scenario: DeliveryScenario, keeps_all_notes: bool) -> None:
        self.scenario, self.keeps_all_notes, self.turn = scenario, keeps_all_notes, 0
        self.notes: dict[int, list[str]] = {}
        self.is_open: dict[int, bool] = {}

    def plan(self, number: int, turn: int) -> None:
        """Plans the next change of a ticket: create first, then comments, closings, and reopenings."""
        with self.scenario.engine.begin() as connection:
            if number not in self.notes:
                self.notes[number], self.is_open[number] = [], True
                connection.execute(_TICKET, {"f": fingerprint_of(number), "title": f"Ticket {number}", "hour": hour(0)})
                action = "create"
            else:
                action = "comment" if turn % 3 else "close" if self.is_open[number] else "reopen"
            if action in ("close", "reopen"):
                self.is_open[number] = action == "reopen"
                state = "open" if self.is_open[number] else "closed"
                connection.execute(
                    sa.text("update tickets.ticket set state = :s where fingerprint = :f"),
                    {"s": state, "f": fingerprint_of(number)},
                )
            ticket_id = connection.execute(
                sa.text("select ticket_id from tickets.ticket where fingerprint = :f"), {"f": fingerprint_of(number)}
            ).scalar_one()
            self.turn += 1
            note = f"change {self.turn} of ticket {number}"
            if action == "create" or self.keeps_all_notes:
                self.notes[number].append(note)
            answer: Any = "acknowledged" if action == "comment" and turn == 1 else None
            if answer:  # a person acknowledged it on the page
                update_ticket(connection, ticket_id, acknowledged_by="Vera")
            plan_change(connection, ticket_id, action, hour(self.turn), note, answer=answer)  # type: ignore[arg-type]

    def must_be(self) -> dict[str, tuple[bool, list[str]]]:
        return {fingerprint_of(number): (self.is_open[number], notes) for number, notes in self.notes.items()}


def fingerprint_of(number: int) -> str:
    """A fingerprint; those of two numbers differ from the first digit on."""
    return f"{number}a" * 32


def found(endpoint: Endpoint) -> dict[str, tuple[bool, list[str]]]:
    """State and notes in the tracker, by fingerprint; notes of a ticket that was filed twice are joined."""
    tickets: dict[str, tuple[bool, list[str]]] = {}
    for ticket in endpoint.tickets():
        texts = ticket.texts[: None if endpoint.keeps_all_notes else 1]
        was_open, before = tickets.get(ticket.fingerprint, (False, []))
        notes = [note for text in texts for note in _NOTE.findall(text)]
        tickets[ticket.fingerprint] = was_open or ticket.is_open, before + notes
    return tickets


def outcome_of(endpoint: Endpoint, fleet: Fleet) -> Counter[str]:
    """Number of changes delivered, lost, doubled, or out of order, and of tickets in a wrong state."""
    outcome, tickets = Counter[str](), found(endpoint)
    for fingerprint, (is_open, must) in fleet.must_be().items():
        is_there, notes = tickets.get(fingerprint, (is_open, []))
        lost, doubled = Counter(must) - Counter(notes), Counter(notes) - Counter(must)
        outcome.update({"expected": len(must), "lost": lost.total(), "doubled": doubled.total()})
        outcome["out of order"] += not lost and not doubled and notes != must
        outcome["wrong state"] += is_there != is_open
    return outcome


@pytest.mark.parametrize("kind", ALL)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    print_blob=True,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking takes minutes
)
@given(
    turns=st.lists(st.lists(CHANGE, max_size=5), min_size=1, max_size=4),
    faults=st.lists(st.sampled_from(FAULTS), min_size=5, max_size=60),
    waits=st.lists(st.sampled_from([0, 0, 1, 4, 11, 60]), min_size=4, max_size=4),
    lag_minutes=st.sampled_from([0, 0, 1, MOST_LAG_MINUTES]),
)  # fmt: skip
@example(  # a failed query made the run forget that a response was lost
    turns=[[(2, 0), (2, 1)], [(0, 3), (2, 1)], []],
    faults=[
        "never", "wrong after", "killed before", "doubled", "late", "cut", "doubled", "page after", "error before",
        "killed after", "late", "late", "no connection", "late", "wrong after", "killed after", "page after",
    ],
    waits=[0, 0, 1, 4],
    lag_minutes=4,
)  # fmt: skip
@example(  # a list that did not show our reopening yet was taken for a closing by a person
    turns=[[(0, 0)], [(0, 3)], [(0, 3)], []], faults=["fine"], waits=[11, 11, 0, 0], lag_minutes=MOST_LAG_MINUTES
)  # fmt: skip
def test_no_change_is_lost_or_posted_twice(
    shared_scenario: DeliveryScenario, tally: Tally, kind: str, turns: list[list[tuple[int, int]]], faults: list[str],
    waits: list[int], lag_minutes: int,
) -> None:  # fmt: skip
    shared_scenario.clear()
    clock = Clock()
    endpoint_class, tracker = ALL[kind]
    endpoint = endpoint_class(clock, timedelta(minutes=lag_minutes))
    if endpoint.is_confirmed_by_status:  # the page of another server cannot be distinguished from a response
        faults = [fault for fault in faults if fault not in ("page before", "wrong before")]
    way = Faulty(endpoint, iter(faults), clock)
    config = Config(tickets=Tickets(trackers={"team": tracker}))
    fleet = Fleet(shared_scenario, endpoint.keeps_all_notes)

    def run() -> list[str]:
        sink = opened(tracker, way, clock)  # each run is a new process
        try:
            if sink.remembers:
                listen(shared_scenario.engine, sink, clock.now)
            failed = deliver(shared_scenario.engine, sink, config, lambda: clock.now).failed
        except StreamwardenError as error:  # the tracker is down: nothing is delivered in this run
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
    tally["changes"].setdefault(kind, Counter(scenarios=0)).update({**outcome_of(endpoint, fleet), "scenarios": 1})
    assert found(endpoint) == fleet.must_be()
    assert shared_scenario.rows("select * from tickets.response") == [], (
        "our own changes do not count as responses of people"
    )
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

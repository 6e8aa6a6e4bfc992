"""The results of a probe, and a function that asks all sources in parallel within one time limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Thread

from streamwarden.base.addresses import masked

TIMEOUT_SECONDS = 25


@dataclass(frozen=True)
class Answer:
    """One line of the probe's table: a request to a source, and its result."""

    source: str
    asked: str
    answer: str = "works"
    problem: str | None = None
    """Why the request failed; None: it succeeded."""
    action: str | None = None
    """What fixes the problem: a command, or an instruction."""


@dataclass(frozen=True)
class Question:
    """All requests to one source. `ask` may raise any exception."""

    source: str
    ask: Callable[[], Iterator[Answer]]


def ask_all(questions: Sequence[Question], timeout_seconds: float = TIMEOUT_SECONDS) -> list[Answer]:
    """All answers, in the order of the questions. A source that hangs delays neither the others nor the end."""
    found: list[list[Answer]] = [[] for _ in questions]
    threads = [Thread(target=_fill, args=pair, daemon=True) for pair in zip(questions, found, strict=True)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + timeout_seconds
    for thread, question, answers in zip(threads, questions, found, strict=True):
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            problem = f"no answer within {timeout_seconds:g} s"
            action = "check whether a firewall drops packets from this host"
            answers.append(Answer(question.source, "any response", problem=problem, action=action))
    return [answer for answers in found for answer in answers]


def _fill(question: Question, answers: list[Answer]) -> None:
    try:
        answers.extend(question.ask())
    except Exception as error:  # any exception of a client is a result of the probe
        problem = " ".join(masked(str(error)).split()) or type(error).__name__
        answers.append(Answer(question.source, "any response", problem=problem))


def sentence(gap: str) -> str:
    """The sentence of a source's gap `<status>: <sentence>`."""
    return gap.partition(": ")[2] or gap

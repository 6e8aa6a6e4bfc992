"""What a source answered to one question; and all questions at once, each within the same time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Thread

from streamwarden.base.addresses import masked

PATIENCE_SECONDS = 25


@dataclass(frozen=True)
class Answer:
    """One line of the table."""

    source: str
    asked: str
    told: str = "works"
    problem: str | None = None
    """Why it doesn't; None: it does."""
    cure: str | None = None
    """A line to paste or a thing to do."""


@dataclass(frozen=True)
class Question:
    """Asks one source whatever is to be known of it; may raise anything."""

    source: str
    ask: Callable[[], Iterator[Answer]]


def ask_all(questions: Sequence[Question], patience_seconds: float = PATIENCE_SECONDS) -> list[Answer]:
    """All answers, in the order of the questions. A source that hangs doesn't hold up the others, nor the end."""
    found: list[list[Answer]] = [[] for _ in questions]
    threads = [Thread(target=_fill, args=pair, daemon=True) for pair in zip(questions, found, strict=True)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + patience_seconds
    for thread, question, answers in zip(threads, questions, found, strict=True):
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            problem = f"no answer within {patience_seconds:g} s"
            cure = "Look whether a firewall drops what this machine sends there."
            answers.append(Answer(question.source, "an answer", problem=problem, cure=cure))
    return [answer for answers in found for answer in answers]


def _fill(question: Question, answers: list[Answer]) -> None:
    try:
        answers.extend(question.ask())
    except Exception as error:  # whatever a client raises is an answer too
        told = " ".join(masked(str(error)).split()) or type(error).__name__
        answers.append(Answer(question.source, "an answer", problem=told))


def sentence(gap: str) -> str:
    """A source's `refused: <one sentence>` without the status."""
    return gap.partition(": ")[2] or gap

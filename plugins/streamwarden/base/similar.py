"""Guesses what a misspelled name was meant to be."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """`did you mean 'kafka'?` with the most similar known name; `otherwise` if none is similar."""
    similar = get_close_matches(name, sorted(known), 1)
    return f"did you mean '{similar[0]}'?" if similar else otherwise

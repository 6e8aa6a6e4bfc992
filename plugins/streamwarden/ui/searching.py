"""Data of the search page: resources and findings that contain all words, in any order."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import urlencode

from streamwarden.detectors.resources import KINDS
from streamwarden.rendering.readable import clean
from streamwarden.store.queries import Row
from streamwarden.ui.links import KIND_LABELS, UnknownError
from streamwarden.ui.pages import NO_FILTER, _fetch, _warehouse, words_of

MAX_RESOURCES, MAX_FOUND, MAX_SUGGESTED = 50, 20, 8


def search(words: str | None, kind: str | None, page: int = 1, *, is_suggestion: bool = False) -> Row:
    """Resources and open findings for some words; without words, all resources (of a kind).

    Args:
        kind: only resources of this kind.
        page: page of the resources, from 1.
        is_suggestion: the first few only, for the list below the search field.

    Raises:
        UnknownError: there is no such kind.
    """
    if kind and kind not in KINDS:
        raise UnknownError(f"There is no kind of resource {clean(kind)[:40]!r}; the kinds are {', '.join(KINDS)}.")
    asked = words_of(words)
    most = MAX_SUGGESTED if is_suggestion else MAX_RESOURCES
    with _warehouse() as (connection, _):
        stored = _fetch(connection, "stored_hour")[0]["as_of"]
        resources = _fetch(
            connection, "search_resources", words=asked, first_word=asked[0] if asked else "", kind=kind or None,
            most=most, skip=(page - 1) * most,
        )  # fmt: skip
        wanted = NO_FILTER | {"words": asked, "kind": kind or None}
        found = _fetch(connection, "findings", **wanted, most=most if is_suggestion else MAX_FOUND) if asked else []
    return {
        "place": "search",
        "asked_words": clean(words or ""),
        "kind": kind or "",
        "kind_labels": KIND_LABELS,
        "resources": resources,
        "findings": found,
        "page": page,
        "first": (page - 1) * most + 1,
        "query": urlencode({name: value for name, value in (("q", clean(words or "")), ("kind", kind)) if value}),
        "stored": stored or None,
        "is_stale": stored is not None and (datetime.now(UTC) - stored).total_seconds() > 86_400,
    }

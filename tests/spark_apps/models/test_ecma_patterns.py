"""Patterns of JSON Schema with the semantics of ECMA-262 where Python's differ."""

from __future__ import annotations

import pytest

from spark_apps.models.ecma_patterns import NoPattern, check, is_found


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"^\p{L}+$", "äö", True),
        (r"^\p{L}+$", "a1", False),
        (r"^\P{L}+$", "1 2", True),
        (r"^[\p{L}\p{N}_]+$", "ä9_", True),
        (r"^\p{Script=Greek}$", "α", True),
        (r"^(?<k>x)_", "x_1", True),
        (r"(?<k>a)\k<k>", "aa", True),
        (r"(a)\1", "aa", True),
        (r"(?<=a+)b", "aab", True),
        (r"(?<!a)b", "ab", False),
        (r"^\d+$", "12", True),
        (r"^\d+$", "٣", False),
        (r"^\d+$", "3\n", False),
        (r"^\w+$", "ä", False),
        (r"^\D+$", "٣", True),
        (r"^[\s\d]+$", " \ufeff1", True),
        (r"\bfoo\b", "a foo", True),
        (r"\bfoo\b", "äfoo", True),
        (r"^.$", "\u2028", False),
        (r"^.$", "é", True),
        (r"^[^]$", "\n", True),
        (r"[]", "a", False),
        (r"^\/a\-b$", "/a-b", True),
        (r"^\u{1F600}$", "😀", True),
        (r"^\uD83D\uDE00$", "😀", True),
        (r"^\x41\0\cA$", "A\0\x01", True),
        (r"^[[a&&b]+$", "[&", True),
        (r"^[\]\\*(]+$", "]\\*(", True),
        (r"^x-", "x-a", True),
        # A complement within brackets, and an escape that only JavaScript without the flag `u` (and Java) allows.
        (r"^[\s\S]*$", "a\n\ufeff😀", True),
        (r"^[^\S\n]$", "\u00a0", True),
        (r"^[^\S\n]$", "\n", False),
        (r"^[\W\d]+$", "٣-1", True),
        (r"^[^\D]+$", "٣", False),
        (r"^[\w\.\@\_\:]+$", "a.b@c:d", True),
        (r"^(a|b)*?c{2,3}$", "abcc", True),
    ],
)
def test_matches_of_a_pattern(pattern: str, text: str, expected: bool) -> None:
    assert is_found(pattern, text) is expected


@pytest.mark.parametrize(
    "pattern",
    ["(?P<a>x)", "(?i)x", "(?i:x)", r"\Aa", r"a\Z", "a++", "(?>a)", "(", "[a", r"\p{L", r"\p{Nope}", "*a", "(?#x)a", 7],
)
def test_invalid_patterns(pattern: object) -> None:
    with pytest.raises(NoPattern):
        check(pattern)


def test_a_search_with_catastrophic_backtracking_is_aborted() -> None:
    with pytest.raises(NoPattern):
        is_found("^(a|aa)+$", "a" * 60 + "!")
    with pytest.raises(NoPattern):  # and is not tried again
        is_found("^(a|aa)+$", "a")

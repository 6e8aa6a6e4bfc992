"""JSON values that look alike: the same text except for the content of strings and numbers.

Determining the exact type of a value costs Spark some 40 µs of CPU, more than its schema inference, but values of a
changelog repeat few patterns. So each Arrow batch counts look-alikes (vectorized), and only one of each is typed.

Two values look alike only if they have the same type. A pattern keeps what determines the type: keys, braces,
quotes, one digit of an integer, the point of a fraction, `.0` (a fraction that Spark types as an integer). Plain
JSON is processed byte by byte, all values at once; values with exponents, long numbers, or control characters are
processed by regular expressions, at four times the cost; text that is hardly JSON has only itself as look-alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_apps.models.json_shapes import DEEPEST

_STRING = r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*'
_CONTENTS = "|".join(
    (
        rf'({_STRING}"\s*:)(?:\s*-?[0-9]{{1,18}})?',  # a key stays, an integer value after it is dropped
        rf'{_STRING}(")',
        r"(\[)\s*\]",  # an empty array differs from one with an integer
        r"([\[,]\s*)-?[0-9]{1,18}",
        r"(\.)[0-9]*[1-9][0-9]*",
        r"([eE])[+-]?[0-9]+",
    )
)
_KEPT = r"\1\2\3\4\5\6"
# Text that JSON rejects, and that would look like a complete value without its strings and numbers.
_BROKEN = "|".join(
    (
        r":\s*[,}\]]|,\s*[,}\]:]|[\[{]\s*,",
        r"[:,\[]\s*-?(?:0[0-9]|\.[0-9])",
        r"[0-9](?:\.|\.?[0-9]*[eE][+-]?)\s*[,}\]]",
        r"(?:tru|fals)e[+-]?[0-9]",
    )
)
_ESCAPES = np.frombuffer(b'"\\/bfnrtu', np.uint8)
_HEX = np.frombuffer(b"0123456789abcdefABCDEF", np.uint8)
_JSON_OF_SIDE = r"\A[\x00\x01][{\[]"
_FRAME_OF_SIDE = r"\A(?:\x01\x00|\x00{5})(?s:.)"
"""In a store of an outer join, a byte before each value names its side."""
_LONGEST_INTEGER = 18
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_OPENING, _CLOSING = np.frombuffer(b"{[", np.uint8), np.frombuffer(b"}]", np.uint8)
_BYTES_AT_ONCE = 4 * 2**20
_PLAIN, _ODD, _ITSELF = 0, 1, 2
"""Method that created a pattern; patterns of two methods cannot be compared."""
_KEY, _TEXT = 1, 2


def look_alikes(edges: Mapping[str, Sequence[int]]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For `mapInArrow`: (resource, position, value) → (resource, bucket, value, is_deep, count, first, last).

    One row per pattern within a batch, resource, and bucket (number of the resource's edges before the position): an
    example value, whether it is nested too deeply to be typed, the number of values, and the first and last
    position.
    """
    return partial(_count, edges={resource: np.array(found, np.int64) for resource, found in edges.items()})


def _count(batches: Iterable[pa.RecordBatch], edges: Mapping[str, np.ndarray]) -> Iterator[pa.RecordBatch]:
    for batch in _bounded(batches):
        value = batch.column("value")
        way, pattern = patterns(value)
        keys = [batch.column("resource"), _buckets(batch, edges), way, pattern]
        names = ["resource", "bucket", "way", "pattern"]
        rows = pa.array(np.arange(batch.num_rows, dtype=np.int32))
        counted = (
            pa.table([*keys, batch.column("position"), rows], [*names, "position", "row"])
            .group_by(names)
            .aggregate([("position", "count"), ("position", "min"), ("position", "max"), ("row", "min")])
            .combine_chunks()
        )
        ones = value.take(counted["row_min"].combine_chunks())
        yield from pa.table(
            {
                "resource": counted["resource"],
                "bucket": counted["bucket"],
                "value": ones,
                "is_deep": pa.array([_is_deep(one.as_py()) for one in ones], pa.bool_()),
                "count": counted["position_count"],
                "first": counted["position_min"],
                "last": counted["position_max"],
            }
        ).to_batches()


def _is_deep(value: bytes) -> bool:
    """Whether more than DEEPEST brackets are open at once, outside of strings."""
    if value.count(b"{") + value.count(b"[") <= DEEPEST:
        return False
    outside = np.frombuffer(_STRINGS.sub(b"", value), np.uint8)
    steps = np.isin(outside, _OPENING).astype(np.int32) - np.isin(outside, _CLOSING)
    return int(np.cumsum(steps).max(initial=0)) > DEEPEST


def _bounded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Splits batches with large values: processing takes some twenty bytes of memory per byte."""
    for batch in batches:
        rows = max(batch.num_rows * _BYTES_AT_ONCE // max(batch.nbytes, 1), 1)
        yield from (batch.slice(i, rows) for i in range(0, batch.num_rows, rows))


def _buckets(batch: pa.RecordBatch, edges: Mapping[str, np.ndarray]) -> pa.Array:
    resource, position = batch.column("resource").dictionary_encode(), batch.column("position").to_numpy()
    index, found = resource.indices.to_numpy(), np.zeros(batch.num_rows, np.int32)
    for i, name in enumerate(resource.dictionary.to_pylist()):
        of = index == i
        found[of] = np.searchsorted(edges.get(name, ()), position[of])
    return pa.array(found)


def patterns(value: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The pattern of each value and the method that created it; values with equal pattern and method have one type."""
    pattern, is_odd = _plain_patterns(value)
    way = np.where(is_odd, _ODD, _PLAIN).astype(np.int8)
    if is_odd.any():
        odd = pa.array(is_odd)
        pattern = pc.replace_with_mask(pattern, odd, pc.replace_substring_regex(value.filter(odd), _CONTENTS, _KEPT))
    framed, of_side = _is_framed(value), pc.match_substring_regex(value, _FRAME_OF_SIDE)
    head = pc.if_else(of_side, pc.binary_slice(value, 0, 6), pc.binary_slice(value, 0, 5))
    pattern = pc.if_else(framed, head, pattern)
    itself = pc.and_(pc.match_substring_regex(value, _BROKEN), pc.invert(framed))
    pattern = pc.if_else(itself, value, pattern)
    way = pc.if_else(pc.or_(itself, framed), pa.scalar(_ITSELF, pa.int8()), pa.array(way))
    return way, pattern


def _is_framed(value: pa.Array) -> pa.Array:
    """Whether only the Schema Registry's frame of a value matters.

    A value of 8 bytes may be a serialized long, and JSON after the side byte of an outer join is not framed.
    """
    size = pc.binary_length(value)
    begins = pc.or_(pc.starts_with(value, b"\0"), pc.match_substring_regex(value, _FRAME_OF_SIDE))
    is_json = pc.match_substring_regex(value, _JSON_OF_SIDE)
    fits = pc.and_(pc.greater_equal(size, 5), pc.not_equal(size, 8))
    return pc.and_(pc.and_(begins, fits), pc.invert(is_json))


def _plain_patterns(value: pa.Array) -> tuple[pa.Array, np.ndarray]:
    """Values without the content of strings and without all but one digit of numbers, and which of them are odd.

    Patterns of odd values have no meaning. All values are in one array of bytes, with a zero before and after it.
    """
    _, offsets, data = value.buffers()
    edges = np.frombuffer(offsets, np.int32)[value.offset : value.offset + len(value) + 1]
    text = np.zeros(int(edges[-1] - edges[0]) + 2, np.uint8)
    text[1:-1] = np.frombuffer(data, np.uint8)[edges[0] : edges[-1]] if data is not None else 0
    edges = edges - edges[0] + 1
    odd = _Rows(edges)
    starts = text[np.minimum(edges[:-1], len(text) - 1)]
    odd.are[(starts != ord("{")) & (starts != ord("["))] = True
    odd.add(np.flatnonzero(text[1:-1] < ord(" ")) + 1)
    inside = _strings(text, odd)
    is_digit = (text - np.uint8(ord("0")) < 10) & (inside == 0)
    drop = inside == _TEXT
    drop[1:] |= is_digit[1:] & is_digit[:-1]
    first = np.flatnonzero(is_digit[1:] & ~is_digit[:-1]) + 1
    end = np.flatnonzero(is_digit[:-1] & ~is_digit[1:]) + 1
    before = text[first - 1]
    is_fraction, is_zero = before == ord("."), text[end - 1] == ord("0")
    is_exponent = np.isin(before, np.frombuffer(b"eE+", np.uint8)) | (
        (before == ord("-")) & np.isin(text[np.maximum(first - 2, 0)], np.frombuffer(b"eE", np.uint8))
    )
    odd.add(first[is_exponent | (end - first > _LONGEST_INTEGER) | (is_fraction & is_zero & (end - first > 1))])
    drop[first[is_fraction & ~is_zero]] = True
    minus = first[before == ord("-")] - 1
    drop[minus[np.isin(text[minus - 1], np.frombuffer(b":[, ", np.uint8))]] = True
    text[first] = ord("0")
    kept = np.flatnonzero(~drop[1:-1]) + 1
    shorter = np.searchsorted(kept, edges).astype(np.int32)
    buffers = [None, pa.py_buffer(shorter), pa.py_buffer(text[kept])]
    return pa.Array.from_buffers(value.type, len(value), buffers), odd.are


class _Rows:
    """Marks rows by positions found in their bytes."""

    def __init__(self, edges: np.ndarray) -> None:
        self.edges = edges
        self.are = np.zeros(len(edges) - 1, np.bool_)

    def of(self, places: np.ndarray) -> np.ndarray:
        """Rows of these byte positions."""
        return np.searchsorted(self.edges, places, side="right") - 1

    def add(self, places: np.ndarray) -> None:
        """Marks the rows of these byte positions."""
        if len(places):
            self.are[self.of(places)] = True


def _strings(text: np.ndarray, odd: _Rows) -> np.ndarray:
    """For each byte: whether it is part of a key, of another string, or neither (0)."""
    is_quote = text == ord('"')
    backslashes = np.flatnonzero(text == ord("\\"))
    if len(backslashes):
        begins = np.diff(backslashes, prepend=-2) != 1
        place = backslashes - backslashes[begins][np.cumsum(begins) - 1]
        escaped = backslashes[place % 2 == 0] + 1
        is_quote[escaped] = False
        odd.add(escaped[~np.isin(text[escaped], _ESCAPES)] - 1)
        codes = escaped[text[escaped] == ord("u")]
        digits = text[np.minimum(codes[:, None] + np.arange(1, 5), len(text) - 1)]
        odd.add(codes[~np.isin(digits, _HEX).all(axis=1)])
    quotes = np.flatnonzero(is_quote)
    counts = np.diff(np.searchsorted(quotes, odd.edges))
    if (uneven := counts % 2 == 1).any():
        odd.are |= uneven
        quotes = quotes[~np.repeat(uneven, counts)]
    opening, closing = quotes[0::2], quotes[1::2]
    behind = text[closing + 1]
    odd.add(closing[behind == ord(" ")])
    depth = np.zeros(len(text), np.int8)
    kind = np.where(behind == ord(":"), _KEY, _TEXT).astype(np.int8)
    depth[opening + 1] += kind
    depth[closing] -= kind
    return np.cumsum(depth, dtype=np.int8)

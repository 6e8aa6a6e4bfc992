"""JSON values that look alike: the same text but for what stands in strings and numbers.

To type a value exactly costs Spark some 40 µs of CPU, more than its own inference; but values of a changelog repeat a
few patterns. So each Arrow batch counts look-alikes (vectorised, in C++), and only one of each is typed.

Two values look alike only if they have the same type. The signs of that are kept: keys, braces, a fraction's point, an
exponent, `.0` (a fraction that Spark takes for an integer), digits beyond the 18th. What is hardly JSON looks like
nothing but itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

_STRING = r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrtu])*'
_CONTENTS = "|".join(
    (
        rf'({_STRING}"\s*:)(?:\s*-?[0-9]{{1,18}})?',  # a key stays, an integer behind it goes
        rf'{_STRING}(")',
        r"(\[)\s*\]",  # an empty array isn't one with an integer
        r"([\[,]\s*)-?[0-9]{1,18}",
        r"(\.)[0-9]*[1-9][0-9]*",
        r"([eE])[+-]?[0-9]+",
    )
)
_KEPT = r"\1\2\3\4\5\6"
# What JSON refuses, and what would look like a whole value without its strings and numbers.
_BROKEN = "|".join(
    (
        r":\s*[,}\]]|,\s*[,}\]:]|[\[{]\s*,",
        r"[:,\[]\s*-?(?:0[0-9]|\.[0-9])",
        r"[0-9](?:\.|\.?[0-9]*[eE][+-]?)\s*[,}\]]",
        r"(?:tru|fals)e[+-]?[0-9]",
    )
)


def _is_framed(value: pa.Array) -> pa.Array:
    """Whether a Schema Registry's frame is all that matters of it; what is as long as a serialised long may be one."""
    size = pc.binary_length(value)
    return pc.and_(pc.starts_with(value, b"\0"), pc.and_(pc.greater_equal(size, 5), pc.not_equal(size, 8)))


def count_look_alikes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`: (resource, bucket, position, value) → (resource, bucket, value, count, first, last).

    A row for each kind of look-alike within a batch, resource and bucket: one of them, how many, and the first and
    last position.
    """
    for batch in batches:
        value = batch.column("value")
        pattern = pc.replace_substring_regex(value, _CONTENTS, _KEPT)
        pattern = pc.if_else(pc.match_substring_regex(value, _BROKEN), value, pattern)
        pattern = pc.if_else(_is_framed(value), pc.binary_slice(value, 0, 5), pattern)
        keys = [batch.column("resource"), batch.column("bucket"), pattern]
        rows = pa.array(range(batch.num_rows), pa.int32())
        counted = (
            pa.table([*keys, batch.column("position"), rows], ["resource", "bucket", "pattern", "position", "row"])
            .group_by(["resource", "bucket", "pattern"])
            .aggregate([("position", "count"), ("position", "min"), ("position", "max"), ("row", "min")])
            .combine_chunks()
        )
        yield from pa.table(
            {
                "resource": counted["resource"],
                "bucket": counted["bucket"],
                "value": value.take(counted["row_min"].combine_chunks()),
                "count": counted["position_count"],
                "first": counted["position_min"],
                "last": counted["position_max"],
            }
        ).to_batches()

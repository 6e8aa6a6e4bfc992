"""Answers as CSV and Parquet, and their cells as plain values."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from io import BytesIO, StringIO
from typing import Any

from streamwarden.questions.run import Answer

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def plain(cell: Any) -> Any:
    """A value for JSON: numbers stay numbers, times are ISO 8601 in UTC, intervals are seconds."""
    match cell:
        case datetime():
            return f"{cell.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        case timedelta():
            return cell.total_seconds()
        case Decimal():
            return int(cell) if cell == cell.to_integral_value() else float(cell)
    return cell


def text(cell: Any) -> str:
    """A value as text; lists and maps are JSON."""
    value = plain(cell)
    return json.dumps(value) if isinstance(value, dict | list | bool) else str(value)


def rounded(cell: Any) -> str:
    """A value as text for people: floats with four significant digits, from 1,000 on without decimals; times in UTC."""
    if isinstance(cell, datetime):
        return f"{cell.astimezone(UTC):%Y-%m-%d %H:%M}"
    value = plain(cell)
    if not isinstance(value, float):
        return text(cell)
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, is_for_spreadsheets: bool = False) -> str:
    """CSV with a header; null is an empty cell.

    Args:
        is_for_spreadsheets: prefix texts that a spreadsheet would run as a formula with `'`.
    """
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow("" if cell is None else _cell(cell, is_for_spreadsheets) for cell in row)
    return file.getvalue()


def _cell(cell: Any, is_for_spreadsheets: bool) -> str:
    is_formula = is_for_spreadsheets and isinstance(cell, str) and cell.startswith(_FORMULA)
    return f"'{cell}" if is_formula else text(cell)


def parquet_bytes(answer: Answer) -> bytes:
    """A Parquet file of an answer. Times have the zone UTC; lists and maps are JSON text."""
    import pyarrow as pa
    from pyarrow import parquet

    columns = {name: [_arrow_value(row[number]) for row in answer.rows] for number, name in enumerate(answer.columns)}
    file = BytesIO()
    parquet.write_table(pa.table(columns), file)
    return file.getvalue()


def _arrow_value(cell: Any) -> Any:
    if isinstance(cell, Decimal):
        return plain(cell)
    return text(cell) if isinstance(cell, dict | list) else cell

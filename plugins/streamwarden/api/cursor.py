"""Opaque cursors: the position after which the next page of a list begins."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from streamwarden.base.errors import StreamwardenError

T = TypeVar("T")


class CursorError(StreamwardenError):
    """The cursor is not one of this list."""


def cursor_of(*position: Any) -> str:
    """The cursor of a position: the values that a list is ordered by."""
    return urlsafe_b64encode(to_json(position)).decode().rstrip("=")


def position_of(cursor: str | None, kind: TypeAdapter[T]) -> T | None:
    """The position of a cursor; None without one, or for an empty one.

    Raises:
        CursorError: it is not a cursor of this list.
    """
    if not cursor:
        return None
    try:
        position = kind.validate_python(tuple(from_json(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))))
        if "\0" in str(position) or "\\x00" in repr(position):
            raise ValueError("NUL")
    except (ValidationError, ValueError, TypeError, binascii.Error):
        raise CursorError("cursor: not a cursor of this list; pass `next_cursor` of the former page.") from None
    return position

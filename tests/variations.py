"""Values of a parametrized test: a few in `make test`, all of them in `make test-all`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def rare_after(common: int, values: Iterable[Any]) -> list[Any]:
    """Parameters of `pytest.mark.parametrize`; all but the first `common` are marked `rare`."""
    sets = [value if isinstance(value, tuple) else (value,) for value in values]
    return [pytest.param(*one, marks=[pytest.mark.rare] if number >= common else []) for number, one in enumerate(sets)]

"""coincidence_probability against the hypergeometric formula in exact fractions."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 40).flatmap(lambda n: st.tuples(*[st.integers(0, n)] * 3, st.just(n))))
def test_coincidence_probability_is_the_upper_tail_of_the_hypergeometric_distribution(
    module_warehouse: sa.Engine, numbers: tuple[int, int, int, int]
) -> None:
    found, drawn, marked, total = numbers
    likely = sum(
        Fraction(comb(marked, x) * comb(total - marked, drawn - x), comb(total, drawn))
        for x in range(found, min(drawn, marked) + 1)
        if drawn - x <= total - marked
    )
    with module_warehouse.connect() as connection:
        got = connection.execute(
            sa.text("select public.coincidence_probability(:found, :drawn, :marked, :total)"),
            {"found": found, "drawn": drawn, "marked": marked, "total": total},
        ).scalar_one()
    assert got == pytest.approx(float(likely), abs=1e-9)

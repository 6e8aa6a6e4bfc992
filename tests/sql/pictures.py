"""Pictures of the detector pages: the chart of each detector, drawn from example hours (picture_hours.py).

`python -m tests.sql.pictures [DETECTOR …]` redraws docs/pictures/<detector id>.svg; a test fails if one is stale.
"""

from __future__ import annotations

import sys

import sqlalchemy as sa
from streamwarden.base.paths import PROJECT_ROOT
from streamwarden.charts.draw import draw_finding
from streamwarden.detectors import load_detectors

from tests.sql.picture_hours import PICTURES
from tests.sql.rows import HOUR, insert_rows

FOLDER = PROJECT_ROOT / "docs" / "pictures"


def draw(warehouse: sa.Engine, detector: str) -> bytes:
    """The picture as SVG; its rows remain in the warehouse."""
    tables = PICTURES[detector]()
    with warehouse.begin() as connection:
        for table, rows in tables.items():
            insert_rows(connection, table, ({"hour": HOUR, **row} for row in rows))
    named: dict[str, str] = {}
    for row in (row for rows in tables.values() for row in rows):
        named = {column: str(value) for column, value in (row | row.get("identity", {})).items()} | named
    identity = {column: named[column] for column in load_detectors()[detector].identity}
    drawing = draw_finding(warehouse, detector, HOUR, identity, "svg")
    assert drawing is not None, detector
    return drawing.content


def main() -> None:
    """Draws the given pictures, or all."""
    from streamwarden.base.warehouse import engine

    from tests.conftest import a_database, migrate_for_any_day

    with a_database() as migrated:
        migrate_for_any_day(engine(migrated))
        engine(migrated).dispose()
        for detector in sys.argv[1:] or PICTURES:
            with a_database(like=migrated) as url:
                (FOLDER / f"{detector}.svg").write_bytes(draw(engine(url), detector))


if __name__ == "__main__":
    main()

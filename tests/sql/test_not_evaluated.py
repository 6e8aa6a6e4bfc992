"""Resources that were not evaluated: those that are not applicable are listed last and are not counted."""

from __future__ import annotations

import sqlalchemy as sa
from streamwarden.base.paths import PROJECT_ROOT

from tests.sql.rows import HOUR, insert_row

PAGES = PROJECT_ROOT / "sql" / "pages"


def test_a_detached_volume_is_not_counted_as_not_evaluated(warehouse: sa.Engine) -> None:
    with warehouse.begin() as connection:
        insert_row(connection, "detect.detector", {"hour": HOUR, "detector": "d"})
        insert_row(connection, "detect.detector_run", {"hour": HOUR, "detector": "d", "status": "evaluated"})
        for name, is_not_applicable in (("detached", True), ("silent", False), ("x", False)):
            insert_row(
                connection, "detect.evaluation",
                {"hour": HOUR, "detector": "d", "fingerprint": name, "resource_name": name, "status": "unknown",
                 "message": name,
                 "is_not_applicable": is_not_applicable},
            )  # fmt: skip
        newest = connection.execute(sa.text((PAGES / "newest_hour.sql").read_text())).mappings().one()
        lines = connection.execute(sa.text((PAGES / "not_evaluated.sql").read_text()), {"most": 9}).mappings().all()
    assert newest["not_evaluated"] == 2
    assert [line["message"] for line in lines] == ["silent", "x", "detached"]

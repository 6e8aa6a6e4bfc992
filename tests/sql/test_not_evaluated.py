"""What couldn't be judged: what there is nothing to judge of is listed, last, and isn't counted."""

from __future__ import annotations

import sqlalchemy as sa
from streamwarden.base.paths import PROJECT_ROOT

from tests.sql.rows import HOUR, insert_row

PAGES = PROJECT_ROOT / "sql" / "pages"


def test_a_detached_volume_is_no_gap(warehouse: sa.Engine) -> None:
    with warehouse.begin() as connection:
        connection.execute(sa.text("select public.ensure_day(:day)"), {"day": HOUR.date()})
        insert_row(connection, "detect.detector", {"hour": HOUR, "detector": "d"})
        insert_row(connection, "detect.detector_run", {"hour": HOUR, "detector": "d", "status": "evaluated"})
        for name, nothing in (("detached", True), ("silent", False), ("x", False)):
            insert_row(
                connection, "detect.evaluation",
                {"hour": HOUR, "detector": "d", "fingerprint": name, "resource_name": name, "status": "unknown",
                 "message": name,
                 "is_not_applicable": nothing},
            )  # fmt: skip
        newest = connection.execute(sa.text((PAGES / "newest_hour.sql").read_text())).mappings().one()
        lines = connection.execute(sa.text((PAGES / "not_evaluated.sql").read_text()), {"most": 9}).mappings().all()
    assert newest["not_evaluated"] == 2
    assert [line["message"] for line in lines] == ["silent", "x", "detached"]

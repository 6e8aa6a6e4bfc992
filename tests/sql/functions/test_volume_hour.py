"""A volume's hour next to the hour before: volume_modifications, volume_throttling, draining_volumes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from tests.sql.given import rows_for
from tests.sql.rows import HOUR

Row = dict[str, Any]
MIB = 2**20
VOLUME = {"account": "1", "region": "r", "volume_id": "v"}
BEFORE = {"hour": HOUR - timedelta(hours=1)}
ELSEWHERE: tuple[Row, ...] = ({"account": "2"}, {"region": "s"}, {"volume_id": "w"})
GP3 = {"volume_type": "gp3", "size_gib": 10, "provisioned_iops": 3000, "provisioned_throughput_mib_s": 125}
DRAINING = {"hours_to_exhaustion": 5, "hours_to_exhaustion_low": 5, "credits_per_hour": -1, "iops_mean": 301,
            "bytes_per_second_mean": MIB, "baseline_iops": 300, "baseline_bytes_per_second": MIB,
            "burst_balance_last_percent": 50, "minutes_draining": 0}  # fmt: skip
AT_REST = DRAINING | {"iops_mean": 300}
SOON = AT_REST | {"hours_to_exhaustion_low": 4, "minutes_draining": 7}


@pytest.mark.parametrize(
    ("change", "is_modified"),
    [
        ({}, False),
        ({"volume_type": "gp2"}, True),
        ({"size_gib": 9}, True),
        ({"provisioned_iops": 4000}, True),
        ({"provisioned_throughput_mib_s": 250}, True),
        ({"provisioned_throughput_mib_s": None}, None),
        ({"size_gib": 9, "provisioned_throughput_mib_s": None}, True),
    ],
)
def test_modified_volumes(module_warehouse: sa.Engine, change: Row, is_modified: bool | None) -> None:
    now, before = VOLUME | GP3, VOLUME | GP3 | change
    others = [row | GP3 | {"size_gib": 77} for other in ELSEWHERE for row in (VOLUME | other, VOLUME | other | BEFORE)]
    rows = [now, before | BEFORE, now | {"hour": HOUR - timedelta(hours=2), "size_gib": 1}]
    found = rows_for(
        module_warehouse, {"inventory.volume_hourly": rows + others},
        "select * from inventory.volume_modifications(:hour) where account = '1' and region = 'r' and volume_id = 'v'",
    )  # fmt: skip
    assert found == [("1", "r", "v", *(before[column] for column in GP3), is_modified)]


def test_a_volume_that_is_new_is_not_modified(module_warehouse: sa.Engine) -> None:
    given = {"inventory.volume_hourly": [VOLUME | GP3]}
    assert rows_for(module_warehouse, given, "select * from inventory.volume_modifications(:hour)") == []


@pytest.mark.parametrize(
    ("now", "before", "expected"),
    [
        pytest.param({}, {}, (None, 0, 0, None, 0), id="not throttled"),
        pytest.param({"minutes_throttled": 30}, {}, (None, 30, 0, None, 0), id="not at the end of the hour"),
        pytest.param({"minutes_throttled": 30, "throttled_since": 20}, {}, (20, 40, 0, None, 0), id="with pauses"),
        pytest.param({"minutes_throttled": 6, "throttled_since": 40, "minutes_expected": 60, "minutes_present": 60}, {},
                     (40, 6, 0, None, 0), id="single minutes"),
        pytest.param({"minutes_throttled": 6, "throttled_since": 40, "minutes_expected": 60, "minutes_present": 51}, {},
                     (40, 15, 0, None, 0), id="single minutes and missing data points"),
        pytest.param({"minutes_throttled": 5, "throttled_since": -9, "minutes_expected": 60, "minutes_present": 60},
                     {"throttled_since": -9, "minutes_throttled": 9}, (-9, 14, 0, None, 9), id="single minutes go on"),
        pytest.param({"minutes_throttled": 30, "throttled_since": 45}, {}, (45, 30, 0, None, 0), id="after a pause"),
        pytest.param({"minutes_throttled": 60, "throttled_since": 0}, {"throttled_since": -20, "minutes_throttled": 20},
                     (-20, 80, 0, None, 20), id="since the hour before"),
        pytest.param({"minutes_stalled": 1, "throttled_since": -2}, {"minutes_stalled": 2}, (-2, 62, 3, 1, 0),
                     id="stalled since the hour before"),
        pytest.param({"minutes_stalled": 1, "throttled_since": -2}, {"minutes_stalled": None}, (-2, 62, 1, 1, 0),
                     id="the hour before is unknown"),
        pytest.param({"minutes_stalled": 1, "throttled_since": 0}, {"minutes_stalled": 2}, (0, 60, 1, 1, 0),
                     id="stalled since the hour began"),
        pytest.param({"minutes_stalled": 0, "throttled_since": -2}, {"minutes_stalled": 2}, (-2, 62, 0, None, 0),
                     id="stalled in the hour before only"),
        pytest.param({"minutes_at_iops_limit": 5, "minutes_at_throughput_limit": 6, "minutes_at_instance_limit": 7,
                      "minutes_stalled": 8}, {}, (None, 0, 8, 8, 0), id="most: stalled"),
        pytest.param({"minutes_at_iops_limit": 9, "minutes_at_throughput_limit": 6, "minutes_at_instance_limit": 7},
                     {}, (None, 0, 0, 9, 0), id="most: IOPS"),
        pytest.param({"minutes_at_throughput_limit": 9, "minutes_at_instance_limit": 7}, {}, (None, 0, 0, 9, 0),
                     id="most: throughput"),
        pytest.param({"minutes_at_instance_limit": 1}, {}, (None, 0, 0, 1, 0), id="most: one minute at the instance's"),
    ],
)  # fmt: skip
def test_throttling(module_warehouse: sa.Engine, now: Row, before: Row, expected: tuple[Any, ...]) -> None:
    def row(values: Row, **place: Any) -> Row:
        limits = ("iops_limit", "throughput_limit", "instance_limit")
        counts = dict.fromkeys(
            [*(f"minutes_at_{limit}" for limit in limits), "minutes_stalled", "minutes_throttled"], 0
        )
        minutes = values.get("throttled_since")
        since = {} if minutes is None else {"throttled_since": HOUR + timedelta(minutes=minutes)}
        return VOLUME | place | {"known_until": HOUR + timedelta(hours=1)} | counts | values | since

    others = [row({"minutes_throttled": 7, "minutes_stalled": 7}, **other, **BEFORE) for other in ELSEWHERE]
    older = row({"minutes_throttled": 7, "minutes_stalled": 7}, hour=HOUR - timedelta(hours=2))
    found = rows_for(
        module_warehouse, {"metrics.volume_hourly": [row(now), row(before, **BEFORE), *others, older]},
        "select * from metrics.volume_throttling(:hour)",
    )  # fmt: skip
    since, *rest = expected
    assert found == [("1", "r", "v", None if since is None else HOUR + timedelta(minutes=since), *rest)]


def test_throttling_of_a_volume_without_an_hour_before(module_warehouse: sa.Engine) -> None:
    given = {"metrics.volume_hourly": [VOLUME | {"minutes_throttled": 3}]}
    call = "select throttled_minutes, was_minutes_throttled from metrics.volume_throttling(:hour)"
    assert rows_for(module_warehouse, given, call) == [(3, None)]


@pytest.mark.parametrize(
    ("now", "before", "is_draining"),
    [
        pytest.param(DRAINING, {}, True, id="the whole hour"),
        pytest.param(DRAINING | {"hours_to_exhaustion": 6}, {}, True, id="at the limit"),
        pytest.param(DRAINING | {"hours_to_exhaustion": 6.1}, {}, False, id="later"),
        pytest.param(DRAINING | {"hours_to_exhaustion": 0}, {}, True, id="exhausted and draining"),
        pytest.param(
            DRAINING | {"hours_to_exhaustion": 0, "credits_per_hour": 0}, {}, False, id="exhausted, no more load"
        ),
        pytest.param(DRAINING | {"hours_to_exhaustion": 1, "credits_per_hour": 0}, {}, True, id="nearly exhausted"),
        pytest.param(DRAINING | {"hours_to_exhaustion": None}, {}, False, id="no forecast"),
        pytest.param(AT_REST, {}, False, id="the hour drains nothing"),
        pytest.param(AT_REST | {"bytes_per_second_mean": 301 * 256 * 1024}, {}, True, id="large requests"),
        pytest.param(AT_REST | {"cycle_minutes": 30}, {}, True, id="on and off"),
        pytest.param(SOON, {}, True, id="the last minutes, and soon"),
        pytest.param(SOON | {"hours_to_exhaustion_low": 4.1}, {}, False, id="the last minutes, not soon"),
        pytest.param(SOON | {"minutes_draining": 6}, {}, False, id="too few of the last minutes"),
        pytest.param(AT_REST, {"hours_to_exhaustion": 6, "burst_balance_last_percent": 51.1}, True, id="continues"),
        pytest.param(AT_REST, {"hours_to_exhaustion": 6, "burst_balance_last_percent": 51}, False, id="falls no more"),
        pytest.param(AT_REST, {"hours_to_exhaustion": 6.1, "burst_balance_last_percent": 60}, False, id="was later"),
    ],
)
def test_draining_volumes(module_warehouse: sa.Engine, now: Row, before: Row, is_draining: bool) -> None:
    warned = {"hours_to_exhaustion": 1, "burst_balance_last_percent": 99}
    metrics = [VOLUME | now, VOLUME | before | BEFORE, *(VOLUME | other | warned | BEFORE for other in ELSEWHERE),
               VOLUME | warned | {"hour": HOUR - timedelta(hours=2)}]  # fmt: skip
    inventory = [VOLUME | {"volume_type": "gp2"}, *(VOLUME | other | {"volume_type": "st1"} for other in ELSEWHERE)]
    found = rows_for(
        module_warehouse, {"metrics.volume_hourly": metrics, "inventory.volume_hourly": inventory},
        "select * from metrics.draining_volumes(:hour, 6, 4, 7)",
    )  # fmt: skip
    assert found == [("1", "r", "v")] * is_draining

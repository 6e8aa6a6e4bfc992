"""View consumer_trials: the last verdict on each group that was ever on trial."""

from __future__ import annotations

import json
from datetime import timedelta

import sqlalchemy as sa

from tests.sql.rows import HOUR, insert_row

VERDICTS = [
    ("consumer_trial_failed", "c", 3, "on_trial", 4),
    ("consumer_trial_failed", "c", 2, "passed", 24),
    ("consumer_trial_failed", "c", 1, "established", None),
    ("consumer_trial_failed", "d", 2, "on_trial", 7),
    ("consumer_untracked", "e", 1, "untracked", None),
]


def test_the_last_verdict_of_a_trial_is_kept_when_the_group_is_established(warehouse: sa.Engine) -> None:
    with warehouse.begin() as connection:
        for detector, cluster, ago, reason, tried in VERDICTS:
            row = {
                "hour": HOUR - timedelta(hours=ago),
                "detector": detector,
                "reason": reason,
                "status": "ok",
                "fingerprint": cluster,
                "identity": json.dumps({"cluster": cluster, "group_id": "search"}),
                "metrics": json.dumps({"trial_since": "2026-01-01T00:00:00+00:00", "tried_hours": tried}),
            }
            insert_row(connection, "detect.evaluation", row)
        trials = connection.exec_driver_sql("select cluster, group_id, verdict, tried_hours from consumer_trials").all()
    assert sorted(map(tuple, trials)) == [("c", "search", "passed", 24), ("d", "search", "on trial", 7)]

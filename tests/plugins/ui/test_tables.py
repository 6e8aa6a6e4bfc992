"""Tables of a finding's page."""

from __future__ import annotations

from streamwarden.ui.pages import _tables


def test_columns_that_differ_in_their_unit_alone_have_two_titles() -> None:
    option = {"volume_type": "gp3", "limit_iops": 3000, "limit_mib_s": 125, "size_gib": 10}
    metrics, [table] = _tables({"options": [option], "queue_length_mean": 3})
    assert table["columns"] == ["Volume type", "Limit (IOPS)", "Limit (MiB/s)", "Size"]
    assert table["rows"] == [["gp3", "3,000 IOPS", "125 MiB/s", "10 GiB"]]
    assert metrics == {"queue_length_mean": 3}

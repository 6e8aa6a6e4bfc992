"""Tables and texts of pages."""

from __future__ import annotations

from streamwarden.ui.pages import _tables
from streamwarden.ui.render import paragraphs, render, sentence


def test_columns_that_differ_in_their_unit_alone_have_two_titles() -> None:
    option = {"volume_type": "gp3", "limit_iops": 3000, "limit_mib_s": 125, "size_gib": 10}
    metrics, [table] = _tables({"options": [option], "queue_length_mean": 3})
    assert table["columns"] == ["Volume type", "Limit (IOPS)", "Limit (MiB/s)", "Size"]
    assert table["rows"] == [["gp3", "3,000 IOPS", "125 MiB/s", "10 GiB"]]
    assert metrics == {"queue_length_mean": 3}


def test_a_runbook_has_headings() -> None:
    text = "## Meaning\nThe volume\nis throttled.\n\n## Diagnosis\n1. Look.\n2. Compare 2 ## lines.\n"
    expected = ["## Meaning", "The volume is throttled.", "## Diagnosis", "1. Look.", "2. Compare 2 ## lines."]
    assert paragraphs(text) == expected


def test_a_page_escapes_the_heading_and_text_of_a_problem() -> None:
    values = {
        "heading": "<b>",
        "text": '"><script>',
        "place": "",
        "root": "",
        "airflow": "",
        "assets": "",
        "version": "",
    }
    html = render("problem.html", values)
    assert "<script>" not in html.partition("<main")[2] and "&lt;b&gt;" in html


def test_a_message_does_not_break_before_a_unit() -> None:
    shown = sentence("Burst balance is 0 %, capped at 300 IOPS and 75.0 MiB/s for 2 h 48 min on 3 hosts.\n")
    assert shown.replace("\N{NO-BREAK SPACE}", "~") == (
        "Burst balance is 0~%, capped at 300~IOPS and 75.0~MiB/s for 2~h 48~min on 3 hosts."
    )

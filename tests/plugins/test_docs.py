"""The generated pages match their sources and are complete."""

import shutil
from pathlib import Path

import pytest
from streamwarden.detectors import load_detectors
from streamwarden.docs import pages, stale_pages
from streamwarden.questions import load_questions
from streamwarden.store import migration_files


def test_the_pages_are_not_stale() -> None:
    assert stale_pages() == [], "run `make docs` and commit what it writes"


def test_every_detector_has_a_page_with_its_limitations() -> None:
    made = pages()
    for detector in load_detectors().values():
        page = made[f"detectors/{detector.id}.md"]
        assert detector.limitations.strip() in page
        assert all(f"| `{name}` |" in page for name in detector.params)


def test_every_question_is_documented_with_its_parameters_and_columns() -> None:
    page = pages()["questions.md"]
    for question in load_questions().values():
        section = page.partition(f"\n## {question.id}\n")[2].partition("\n## ")[0]
        assert question.example in section
        assert all(f"| `{name}` |" in section for name in [*question.params, *question.columns])


def test_the_dictionary_and_the_reference_are_complete() -> None:
    made = pages()
    assert "## metrics.volume_hourly" in made["warehouse.md"]
    assert "| `burst_balance_percent` |" in made["warehouse.md"]
    assert "| `bootstrap_servers` |" in made["config.md"]
    assert "| `inventory.ebs_usd_per_month(of_region text, " in made["warehouse.md"]


def test_the_dictionary_has_the_newest_comment_of_a_column() -> None:
    """A later migration replaces the comment of this column."""
    assert "| `protocol` | text | classic, consumer (KIP-848), streams (KIP-1071) or share" in pages()["warehouse.md"]


@pytest.mark.slow
def test_a_changed_comment_makes_the_dictionary_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(migration_files.SQL, tmp_path / "sql")
    monkeypatch.setattr(migration_files, "SQL", tmp_path / "sql")
    monkeypatch.setattr("streamwarden.store.dictionary.CACHE", tmp_path)
    (tmp_path / "sql" / "migrations" / "9001_better.sql").write_text(
        "comment on column detect.load.rows is 'Rows that were loaded, by table';"
    )
    assert stale_pages() == ["warehouse.md"]

"""The generated pages are what their sources say now, and name what they should."""

from streamwarden.detectors import load_detectors
from streamwarden.docs import pages, stale_pages


def test_the_pages_are_not_stale() -> None:
    assert stale_pages() == [], "run `make docs` and commit what it writes"


def test_every_detector_has_a_page_with_its_blind_spots() -> None:
    made = pages()
    for detector in load_detectors().values():
        page = made[f"detectors/{detector.id}.md"]
        assert detector.blind_spots.strip() in page
        assert all(f"| `{name}` |" in page for name in detector.params)


def test_the_dictionary_and_the_reference_are_complete() -> None:
    made = pages()
    assert "## metrics.volume_hourly" in made["warehouse.md"]
    assert "| `burst_balance_percent` |" in made["warehouse.md"]
    assert "| `bootstrap_servers` |" in made["config.md"]

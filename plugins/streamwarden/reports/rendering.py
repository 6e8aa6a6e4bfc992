"""Shared code of the reports: rendering, subject, inline styles for mail clients, and the HTML file."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any

from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.charts.draw import Drawing, Format, in_the_dark
from streamwarden.rendering.readable import clean
from streamwarden.rendering.templates import folder_templates
from streamwarden.reports.archive import archive_folder
from streamwarden.tickets.render import finding_url

NO_PDF = (
    "--pdf: WeasyPrint or Pango is not installed. Run `pip install 'streamwarden[pdf]'` and"
    " `apt-get install libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0`."
)
PAPER_STYLE = """
@page { size: A4; margin: 15mm }
body { padding: 0; background: none }
main { max-width: none }
tr, img { break-inside: avoid }
"""
UNASSIGNED, OWNER_CHARACTERS = "unassigned", 100
TEMPLATES = folder_templates(Path(__file__).parent / "templates")


@dataclass(frozen=True)
class Report:
    """A rendered report. The HTML refers to images by content id (`cid:`), as mails do."""

    name: str
    """Name of its file, without extension."""
    subject: str
    html: str
    text: str
    owner: str | None = None
    """The owner of the report; None: it covers all owners."""
    images: dict[str, bytes] = field(default_factory=dict)
    """PNG by content id."""
    dark_images: dict[str, bytes] = field(default_factory=dict)
    """The same as SVG for a dark page. Only the file has them: mail clients do not choose between images."""


@dataclass
class Pictures:
    """The pictures of a report, by content id."""

    light: dict[str, bytes] = field(default_factory=dict)
    dark: dict[str, bytes] = field(default_factory=dict)

    def add(self, cid: str, draw: Callable[[Format], Drawing | None]) -> str | None:
        """Draws a picture for light and dark pages; returns its alternative text. None: there is nothing to draw."""
        try:
            drawing, vectors = draw("png"), draw("svg")
        except StreamwardenError:
            return None  # `make check` finds invalid charts; the report is sent without it
        if drawing is None or vectors is None:
            return None
        self.light[cid], self.dark[cid] = drawing.content, in_the_dark(vectors.content)
        return drawing.alt


def require_begun(begin: date, now: datetime) -> None:
    """Raises StreamwardenError if a period has not begun: its report would say that nothing is open."""
    if begin > now.date():
        raise StreamwardenError(f"{begin}: is in the future; the newest report is that of {now.date()} (UTC).")


def render(form: str, name: str, config: Config, context: dict[str, Any], **parts: Any) -> Report:
    """Renders a report (`daily`, `weekly`, `monthly`) from its HTML and text templates.

    Args:
        name: name of its file, without owner and extension.
        context: values for the templates, including `subject` and `owner`; URLs are added.
        parts: the report's `images` and `dark_images`.
    """
    owner = context["owner"]
    if owner is not None:
        name += f"-{re.sub(r'[^A-Za-z0-9_.-]+', '_', clean(owner) or UNASSIGNED)[:OWNER_CHARACTERS]}"
    context = context | {
        "ui_url": config.ui_url.rstrip("/") + "/streamwarden/",
        "finding_url": lambda fingerprint: finding_url(config, fingerprint),
    }
    html, text = (TEMPLATES.get_template(f"{form}.{ending}").render(context) for ending in ("html", "txt"))
    return Report(name, context["subject"], inlined(html), re.sub(r"\n{3,}", "\n\n", text), owner, **parts)


def for_owner(owner: str | None) -> str:
    """` for OWNER` in a subject; empty for a report of all owners."""
    return "" if owner is None else f" for {clean(owner) or UNASSIGNED}"


def headline(totals: dict[str, Any]) -> str:
    """The counts of open, new, and closed findings, for the subject."""
    if not totals["hours_judged"]:
        return "no hour was evaluated"
    if not totals["open"]:
        return f"nothing open, {totals['closed']} closed"
    critical = f" ({totals['open_critical']} critical)" if totals["open_critical"] else ""
    return f"{totals['open']} open{critical}, {totals['new']} new, {totals['closed']} closed"


def inlined(html: str) -> str:
    """Copies styles to the elements, as many mail clients ignore style sheets. The sheet stays for media queries."""
    import css_inline

    inliner = css_inline.CSSInliner(keep_style_tags=True, keep_at_rules=True, load_remote_stylesheets=False)
    # css_inline does not escape `<` in attributes. This is valid HTML, but some mail clients do not parse it.
    return re.sub(
        r'(<img src="[^"]*" alt=")([^"]*)',
        lambda found: found[1] + found[2].replace("<", "&lt;").replace(">", "&gt;"),
        inliner.inline(html),
    )


def write_report(report: Report, config: Config) -> Path:
    """Writes the report as one HTML file with embedded images; returns its path.

    Raises:
        StreamwardenError: the folder is not writable.
    """
    return _write(config, f"{report.name}.html", embedded(report).encode())


def write_pdf(report: Report, config: Config) -> Path:
    """Writes the report as a PDF next to its HTML file; returns its path. Nothing is loaded from the network.

    Raises:
        StreamwardenError: WeasyPrint or its libraries are not installed, or the folder is not writable.
    """
    try:
        import weasyprint
        from weasyprint.urls import URLFetcher
    except (ImportError, OSError):
        raise StreamwardenError(NO_PDF) from None
    html = re.sub(r"<source [^>]*>", "", embedded(report))  # paper is light
    pdf = weasyprint.HTML(string=html, url_fetcher=URLFetcher(allowed_protocols=("data",))).write_pdf(
        stylesheets=[weasyprint.CSS(string=PAPER_STYLE)]
    )
    return _write(config, f"{report.name}.pdf", pdf)


def embedded(report: Report) -> str:
    """The HTML of the report with its images in it."""
    html = report.html
    for cid, png in report.images.items():
        html = html.replace(f'src="cid:{cid}"', f'src="data:image/png;base64,{base64.b64encode(png).decode()}"')
    for cid, svg in report.dark_images.items():
        html = html.replace(f"cid:{cid}-dark", f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}")
    return html


def _write(config: Config, name: str, content: bytes) -> Path:
    folder = archive_folder(config)
    file = folder / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Atomic: readers never see a partial file.
        unfinished = folder / f"{name}.part"
        unfinished.write_bytes(content)
        unfinished.replace(file)
    except OSError as error:
        raise StreamwardenError(f"reports.folder {folder}: {error.strerror or error}.") from None
    return file

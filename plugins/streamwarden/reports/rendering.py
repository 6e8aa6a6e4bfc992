"""What the reports share: the rendered report, its first line, its styles for mail programs, its file."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import PROJECT_ROOT
from streamwarden.rendering.templates import folder_templates
from streamwarden.tickets.render import finding_url

TEMPLATES = folder_templates(Path(__file__).parent / "templates")


@dataclass(frozen=True)
class Report:
    """A rendered report. The HTML names its pictures by content id (`cid:`), as mail wants it."""

    name: str
    """Of its file, without ending."""
    subject: str
    html: str
    text: str
    owner: str | None = None
    """Whose it is; None: the whole."""
    images: dict[str, bytes] = field(default_factory=dict)


def render(form: str, name: str, config: Config, context: dict[str, Any], **parts: Any) -> Report:
    """A report of a form (`daily`, `weekly`) by its two templates.

    Args:
        context: what the templates need beside the addresses; `subject` among it.
        parts: the report's `owner` and `images`.
    """
    context = context | {
        "ui_url": config.ui_url.rstrip("/") + "/streamwarden/",
        "finding_url": lambda fingerprint: finding_url(config, fingerprint),
    }
    html, text = (TEMPLATES.get_template(f"{form}.{ending}").render(context) for ending in ("html", "txt"))
    return Report(name, context["subject"], inlined(html), re.sub(r"\n{3,}", "\n\n", text), **parts)


def headline(totals: dict[str, Any]) -> str:
    """The first line: what is open, new and closed."""
    if not totals["hours_judged"]:
        return "no hour was evaluated"
    if not totals["open"]:
        return f"nothing open, {totals['closed']} closed"
    critical = f" ({totals['open_critical']} critical)" if totals["open_critical"] else ""
    return f"{totals['open']} open{critical}, {totals['new']} new, {totals['closed']} closed"


def inlined(html: str) -> str:
    """Styles on the elements too: many mail programs drop the sheet. It stays for those that know dark and narrow."""
    import css_inline

    inliner = css_inline.CSSInliner(keep_style_tags=True, keep_at_rules=True, load_remote_stylesheets=False)
    # It writes `<` in attributes as it is: right in HTML, but not every mail program's reader is that good.
    return re.sub(
        r'(<img src="[^"]*" alt=")([^"]*)',
        lambda found: found[1] + found[2].replace("<", "&lt;").replace(">", "&gt;"),
        inliner.inline(html),
    )


def write_report(report: Report, config: Config) -> Path:
    """Writes the report as one HTML file, pictures inside; returns its path.

    Raises:
        StreamwardenError: the folder can't be written.
    """
    html = report.html
    for cid, png in report.images.items():
        html = html.replace(f"cid:{cid}", f"data:image/png;base64,{base64.b64encode(png).decode()}")
    folder = PROJECT_ROOT / config.reports.folder
    file = folder / f"{report.name}.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Readers never see half a file.
        unfinished = file.with_suffix(".part")
        unfinished.write_text(html, encoding="utf-8")
        unfinished.replace(file)
    except OSError as error:
        raise StreamwardenError(f"reports.folder {folder}: {error.strerror or error}.") from None
    return file

"""Charts for pages: a Vega-Lite specification for the script, an SVG without it, both light and dark."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from streamwarden.base.config import Config, load_config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.warehouse import open_warehouse, read_only
from streamwarden.store.queries import Row, ask
from streamwarden.ui.links import UnknownError

if TYPE_CHECKING:
    from streamwarden.charts.draw import Chart

Theme = Literal["light", "dark"]
Form = Literal["json", "svg"]
MEDIA_TYPES: dict[Form, str] = {"json": "application/json", "svg": "image/svg+xml"}


def chart_values(config: Config, found: Row, *, has_tables: bool) -> Row:
    """Alternative text and explanation of the chart of a finding; both empty: it has no chart.

    Args:
        found: a row of `pages/finding`.
        has_tables: the page has the lists of the finding as HTML, so that a chart of kind `table` is not needed.
    """
    from streamwarden.charts import draw  # imports altair

    nothing: Row = {"chart_alt": "", "chart_why": "", "chart_error": None}
    file = draw.FOLDER / f"{found['detector']}.sql"
    try:
        header = draw.load_plot(file)[0] if file.exists() else None
        if header is None or (has_tables and header.kind == "table"):
            return nothing
        text = draw.text_of(open_warehouse(config), found["detector"], found["hour"], found["identity"])
    except StreamwardenError as error:
        return nothing | {"chart_error": str(error)}
    return nothing | {"chart_alt": text, "chart_why": header.why} if text else nothing


def finding_chart(fingerprint: str, hour: datetime | None, form: Form, theme: Theme) -> bytes:
    """The chart of a finding in an hour (None: the newest), as SVG or as the JSON of its specification.

    Raises:
        UnknownError: there is no such finding, or it has no chart.
    """
    from streamwarden.charts import draw  # imports altair

    config = load_config()
    with read_only(config, "20s") as connection:
        rows = ask(connection, "pages/finding", fingerprint=fingerprint, hour=hour)
    if not rows:
        raise UnknownError("There is no such finding in that hour.")
    found = rows[0]
    made = draw.chart_of(
        open_warehouse(config), found["detector"], found["hour"], found["identity"], is_interactive=form == "json"
    )
    if made is None:
        raise UnknownError("This finding has no chart.")
    return chart_content(made, form, theme)


def chart_content(chart: Chart, form: Form, theme: Theme) -> bytes:
    """A chart as SVG, or as the JSON of its specification."""
    from streamwarden.charts.picture import in_the_dark, picture

    is_json = form == "json"
    content = (
        json.dumps(chart.spec, separators=(",", ":")).encode() if is_json else picture(chart.spec, "svg", chart.alt)
    )
    return in_the_dark(content) if theme == "dark" else content

"""`streamwarden docs`: pages generated from the code."""

from __future__ import annotations

from typing import Annotated

import typer

from streamwarden.base.errors import StreamwardenError
from streamwarden.cli.shared import out


def docs(
    check: Annotated[bool, typer.Option("--check", help="Only check whether pages are stale (exit code 1).")] = False,
) -> None:
    """Generate docs/: detectors, causes, data dictionary, config reference."""
    from streamwarden.causes import rule
    from streamwarden.docs import stale_pages, write_pages

    if constant := next(rule.bare_constants(), None):
        raise StreamwardenError(constant)

    pages = stale_pages() if check else write_pages()
    if check and pages:
        raise StreamwardenError(f"stale: {', '.join(pages)}. Run `streamwarden docs`.")
    out.print("\n".join(f"wrote {page}" for page in pages) or "The docs are up to date.")

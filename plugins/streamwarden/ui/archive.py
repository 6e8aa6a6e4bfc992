"""Data of the archive of reports, and a report as a page of its own under a strict Content Security Policy."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from typing import Literal
from urllib.parse import urlencode

from streamwarden.base.config import load_config
from streamwarden.store.queries import Row
from streamwarden.ui.links import UnknownError

Ending = Literal["html", "pdf"]
FORMS = ("daily", "weekly", "monthly")
MAX_REPORTS, MAX_OWNERS = 40, 500
MEDIA_TYPES: dict[Ending, str] = {"html": "text/html; charset=utf-8", "pdf": "application/pdf"}
_STYLE_ATTRIBUTE, _STYLE = re.compile(r' style="[^"]*"'), re.compile(r"<style>(.*?)</style>", re.DOTALL)


def archive(form: str | None, owner: str | None, page: int) -> Row:
    """A page of the archive, the newest reports first.

    Args:
        form: one of `FORMS`; None: all.
        owner: only reports of this owner; '-': only those of all owners; None or '': both.
        page: from 1.
    """
    from streamwarden.reports import archive_folder, filed_reports  # imports altair

    config = load_config()
    everything = filed_reports(config, form)
    found = everything if not owner else [one for one in everything if (one.owner or "-") == owner]
    skip = (page - 1) * MAX_REPORTS
    owners = sorted({one.owner for one in everything if one.owner})
    return {
        "place": "reports",
        "folder": str(archive_folder(config)),
        "reports": found[skip : skip + MAX_REPORTS],
        "total": len(found),
        "page": page,
        "first": skip + 1,
        "forms": FORMS,
        "form": form,
        "owner": owner,
        "owners": owners[:MAX_OWNERS],
        "filters": urlencode({name: value for name, value in (("form", form), ("owner", owner)) if value}),
    }


def report(name: str, ending: Ending) -> tuple[bytes, dict[str, str]]:
    """Content and headers of a report.

    Mails need styles in attributes, which the Content Security Policy forbids. The style sheet has them too, so the
    attributes are removed, and the policy allows the sheet by its hash.

    Raises:
        UnknownError: there is no such report.
    """
    from streamwarden.reports import read_filed  # imports altair

    content = read_filed(load_config(), name, ending)
    if content is None:
        raise UnknownError(f"There is no report {name[:150]}.{ending}: the archive lists those that there are.")
    if ending == "pdf":
        return content, {"Content-Disposition": f'attachment; filename="{name}.pdf"'}
    html = _STYLE_ATTRIBUTE.sub("", content.decode(errors="replace"))
    hashes = [b64encode(sha256(sheet.encode()).digest()).decode() for sheet in _STYLE.findall(html)[:2]]
    allowed = " ".join(f"'sha256-{one}'" for one in hashes) or "'none'"
    policy = (
        f"default-src 'none'; style-src {allowed}; img-src data:; form-action 'none'; frame-ancestors 'self';"
        " base-uri 'none'"
    )
    return html.encode(), {"Content-Security-Policy": policy}

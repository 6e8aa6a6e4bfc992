"""The web application of the pages: access, headers, routes, and error pages.

Airflow does not protect the routes of a plugin. One dependency therefore requires Airflow's login for all routes,
including style sheets and unknown addresses.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlencode

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_view
from fastapi import Depends, FastAPI, Form, HTTPException, Query, Request
from fastapi import Path as PathParam
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from pydantic import StringConstraints
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException as AnyHTTPException

from streamwarden.base.config import load_config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.version import VERSION
from streamwarden.detectors.backtest_jobs import QueueError
from streamwarden.store.migrate import migrated_warehouse
from streamwarden.tickets import responses
from streamwarden.tickets.responses import PAGE, ResponseError, Verb
from streamwarden.ui import archive, charts, forms, incidents, links, overview, pages, questions, resources, searching
from streamwarden.ui import detectors as detector_pages
from streamwarden.ui.render import render

log = logging.getLogger(__name__)
STATIC = Path(__file__).parent / "static"
ASSETS = {
    "style.css": "text/css",
    "frame.js": "text/javascript",
    "search.js": "text/javascript",
    "pending.js": "text/javascript",
    "charts.js": "text/javascript",
    "vega/vega.min.js": "text/javascript",
    "vega/vega-lite.min.js": "text/javascript",
    "vega/vega-embed.min.js": "text/javascript",
    "icon.svg": "image/svg+xml",
    "icon-dark.svg": "image/svg+xml",
}
HEADERS = {
    # Only our own scripts and style sheet. Vega interprets the expressions of charts instead of compiling them.
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; "
    "form-action 'self'; frame-ancestors 'self'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
LOG_IN = "Nothing was changed. Log in in another tab, go back, and send the form again. Your text is kept."
MAY_NOT = f"Nothing was changed. Responses require permission to edit the DAG `{forms.DAG}`: ask an administrator."
HourQuery = Annotated[str | None, Query(max_length=40)]
Words = Annotated[str | None, Query(max_length=200)]
Stored = Annotated[str | None, Query(max_length=500)]
Field = Annotated[str, Form(max_length=64)]

Owner = Annotated[str, StringConstraints(max_length=200)]
Owners = Annotated[Sequence[Owner], Query(max_length=50)]
State = Annotated[Literal["", "firing", "healthy", "not_evaluated", "acknowledged", "muted"] | None, Query()]
Searched = Annotated[str | None, Query(alias="q", max_length=200)]
Page = Annotated[int, Query(ge=1, le=10_000)]
Range = Annotated[Literal["24h", "7d", "35d"], Query(alias="range")]
ReportForm = Annotated[Literal["", "daily", "weekly", "monthly"] | None, Query()]
BacktestId = Annotated[int | None, Query(ge=1, lt=2**63)]
Fingerprint = Annotated[str | None, Query(pattern="^([0-9a-f]{64})?$")]
FindingId = Annotated[str, PathParam(pattern="^[0-9a-f]{64}$")]


app = FastAPI(
    title="Streamwarden",
    dependencies=[Depends(requires_access_view(AccessView.PLUGINS)), Depends(forms.require_text)],
    docs_url=None,
    redoc_url=None,
    openapi_url=None,
)


@app.middleware("http")
async def _guard_headers(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    response = await call_next(request)
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


@app.get("/")
def overview_page(request: Request, user: GetUserDep, page: Page = 1, owner: Owners = ()) -> HTMLResponse:
    """The overview, of all owners or of some."""
    return _page(request, "overview.html", overview.overview(page, [one for one in owner if one], user))


@app.get("/findings")
def findings(
    request: Request,
    user: GetUserDep,
    severity: Words = None,
    detector: Words = None,
    kind: Words = None,
    cluster: Words = None,
    owner: Owners = (),
    application: Words = None,
    state: State = None,
    words: Searched = None,
    after: Fingerprint = None,
) -> HTMLResponse:
    """Findings, filtered, a page of them."""
    filters = {"severity": severity, "detector": detector, "kind": kind, "cluster": cluster}
    values = pages.findings(words, after, owner, user, **filters, application=application, state=state)
    return _page(request, "findings.html", values)


@app.get("/search")
def search(request: Request, words: Searched = None, kind: Words = None, page: Page = 1) -> HTMLResponse:
    """Resources and findings that contain all words."""
    return _page(request, "search.html", searching.search(words, kind, page))


@app.get("/search/suggestions")
def suggestions(request: Request, words: Searched = None) -> HTMLResponse:
    """The first results, as a part of a page for the list below the search field."""
    return _page(request, "suggestions.html", searching.search(words, None, is_suggestion=True))


@app.get("/findings/{fingerprint}")
def finding(
    request: Request, user: GetUserDep, fingerprint: str, hour: HourQuery = None, stored: Stored = None
) -> HTMLResponse:
    """One finding."""
    values = pages.finding(fingerprint, hour)
    shown = {"form": forms.form_for(request, user), "stored": forms.stored_verb(stored, fingerprint, user)}
    return _page(request, "finding.html", values | shown)


@app.get("/findings/{fingerprint}/chart.{form}")
def finding_chart(
    fingerprint: FindingId, form: charts.Form, theme: charts.Theme = "light", hour: HourQuery = None
) -> Response:
    """The chart of a finding: its Vega-Lite specification, or its picture."""
    content = charts.finding_chart(fingerprint, pages.hour_of(hour), form, theme)
    return Response(content, media_type=charts.MEDIA_TYPES[form])


@app.get("/incidents/{fingerprint}")
def incident(request: Request, user: GetUserDep, fingerprint: str, stored: Stored = None) -> HTMLResponse:
    """The incident that a finding belongs to."""
    values = incidents.incident(fingerprint)
    shown = {"form": forms.form_for(request, user), "stored": forms.stored_verb(stored, fingerprint, user)}
    return _page(request, "incident.html", values | shown)


@app.post("/responses", dependencies=[Depends(forms.require_editor)])
def respond(
    request: Request,
    user: GetUserDep,
    fingerprint: Field,
    verb: Annotated[Verb, Form()],
    token: Annotated[str, Form(max_length=500)] = "",
    words: Annotated[str, Form(max_length=10_000)] = "",
    until: Annotated[datetime | None, Form()] = None,
    other: Annotated[str | None, Form(max_length=64)] = None,
    place: Annotated[Literal["findings", "incidents"], Form()] = "findings",
) -> RedirectResponse:
    """Applies a response to a finding, then shows the page from which it was sent."""
    forms.require_own(token, user)
    pages.respond(fingerprint, responses.Response(verb, user.get_name(), PAGE, words, _in_utc(until), other))
    query = urlencode({"stored": forms.sign_stored(verb, fingerprint, user)})
    return RedirectResponse(f"{_root(request)}/{place}/{fingerprint}?{query}#responses", status_code=303)


@app.get("/resources/{kind}/{rest:path}")
def resource(request: Request, kind: str, rest: str, asked_range: Range = "24h") -> HTMLResponse:
    """One resource."""
    return _page(request, "resource.html", resources.resource(kind, rest, asked_range))


@app.get("/timelines/{kind}/{rest:path}")
def timeline(
    kind: str, rest: str, form: charts.Form = "svg", theme: charts.Theme = "light", asked_range: Range = "24h"
) -> Response:
    """The timeline of a resource: its Vega-Lite specification, or its picture."""
    content = resources.timeline(kind, rest, asked_range, form, theme)
    return Response(content, media_type=charts.MEDIA_TYPES[form])


@app.get("/coverage")
def coverage(request: Request, hour: HourQuery = None) -> HTMLResponse:
    """Data coverage."""
    return _page(request, "coverage.html", pages.coverage(hour))


@app.get("/reports")
def reports(request: Request, form: ReportForm = None, owner: Words = None, page: Page = 1) -> HTMLResponse:
    """The archive of reports, a page of it."""
    return _page(request, "reports.html", archive.archive(form or None, owner, page))


@app.get("/reports/{name}.{ending}")
def report(name: Annotated[str, PathParam(max_length=200)], ending: archive.Ending) -> Response:
    """A report of the archive as it was mailed, or its PDF."""
    content, headers = archive.report(name, ending)
    return Response(content, media_type=archive.MEDIA_TYPES[ending], headers=headers)


@app.get("/detectors")
def detectors(request: Request) -> HTMLResponse:
    """All detectors."""
    return _page(request, "detectors.html", detector_pages.detectors())


@app.get("/detectors/{detector}")
def detector(request: Request, user: GetUserDep, detector: str, backtest: BacktestId = None) -> HTMLResponse:
    """One detector."""
    values = detector_pages.detector(detector, backtest)
    return _page(request, "detector.html", values | {"form": forms.form_for(request, user)})


@app.post("/detectors/{detector}/backtests", dependencies=[Depends(forms.require_editor)])
async def try_parameters(request: Request, user: GetUserDep, detector: str) -> RedirectResponse:
    """Queues a backtest with the parameters of the form, then shows the detector's page."""
    fields = {name: value for name, value in (await request.form(max_fields=100)).items() if isinstance(value, str)}
    forms.require_own(fields.pop("token", ""), user)
    try:
        queued = await run_in_threadpool(detector_pages.submit_backtest, detector, fields, user.get_name())
    except (QueueError, links.UnknownError):
        raise
    except StreamwardenError as error:
        raise ResponseError(str(error)) from None
    return RedirectResponse(f"{_root(request)}/detectors/{detector}?backtest={queued}#backtest", status_code=303)


@app.get("/static/{name:path}")
def static(name: str) -> Response:
    """One of the static files: style sheet, script, or icon; 404 for any other name."""
    if name not in ASSETS:
        raise HTTPException(404)
    headers = {"Cache-Control": "private, max-age=86400"}  # its URL changes with its content
    return FileResponse(STATIC / name, media_type=ASSETS[name], headers=headers)


app.include_router(questions.routes(lambda *values: _page(*values)))


@app.api_route("/{rest:path}", methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def anything_else(rest: str) -> Response:
    """404 for unknown addresses, after the check of the login."""
    raise HTTPException(404)


@app.exception_handler(AnyHTTPException)
def _refused(request: Request, error: AnyHTTPException) -> Response:
    # Airflow rejects an expired token with 403 too; for a user without permission, the detail is "Forbidden".
    is_stranger = error.status_code == 401 or (error.status_code == 403 and error.detail != "Forbidden")
    if is_stranger and _wants_page(request) and request.method == "POST":
        return _problem(request, 401, "You are no longer logged in", LOG_IN)
    if is_stranger and _wants_page(request):
        return RedirectResponse(get_auth_manager().get_url_login(next_url=_path_of(request)), status_code=303)
    if is_stranger or not _wants_page(request):
        return JSONResponse({"detail": error.detail}, error.status_code)
    if error.status_code == 403 and request.method == "POST":
        return _problem(request, 403, "You cannot respond", MAY_NOT)
    if error.status_code == 403:
        return _problem(request, 403, "You cannot view this page", "Ask an Airflow administrator for the role Viewer.")
    return _problem(request, error.status_code, "Page not found", "Findings are deleted after their retention.")


@app.exception_handler(links.UnknownError)
def _unknown(request: Request, error: links.UnknownError) -> Response:
    return _problem(request, 404, "Not found", str(error))


@app.exception_handler(forms.ForgedError)
def _forged(request: Request, error: forms.ForgedError) -> Response:
    return _problem(request, 403, "Nothing was changed", str(error))


@app.exception_handler(QueueError)
def _queue_full(request: Request, error: QueueError) -> Response:
    return _problem(request, 429, "Nothing was changed", str(error))


@app.exception_handler(ResponseError)
def _response_failed(request: Request, error: ResponseError) -> Response:
    return _problem(request, 422, "Nothing was changed", f"{error} Go back: your text is kept.")


@app.exception_handler(RequestValidationError)
def _invalid_request(request: Request, error: RequestValidationError) -> Response:
    first = error.errors()[0]
    what = "The form" if request.method == "POST" else "The address"
    status = 422 if request.method == "POST" else 400
    return _problem(request, status, f"{what} is invalid", f"{first['loc'][-1]}: {first['msg']}.")


@app.exception_handler(StreamwardenError)
def _unavailable(request: Request, error: StreamwardenError) -> Response:
    return _problem(request, 503, "This page is not available", str(error))


@app.exception_handler(SQLAlchemyError)
def _warehouse_away(request: Request, error: SQLAlchemyError) -> Response:
    message = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
    log.warning("streamwarden page %s: %s", request.url.path, message)
    missing = "does not exist" in message
    if missing and (other_release := _other_release()):
        return _problem(request, 503, "The warehouse is of another release", other_release)
    actions = "Run `streamwarden migrate`." if missing else "Check PostgreSQL. Stored data is kept."
    return _problem(request, 503, "The warehouse does not respond", f"{message} {actions}")


@app.exception_handler(Exception)
def _internal_error(request: Request, error: Exception) -> Response:
    log.exception("streamwarden page %s", request.url.path, exc_info=error)
    response = _problem(request, 500, "Internal error", "See the log of Airflow's API server.")
    response.headers.update(HEADERS)  # this response does not pass the middleware
    return response


def _page(request: Request, template: str, values: dict[str, object], status: int = 200) -> HTMLResponse:
    root = _root(request)
    address = {
        "root": root,
        "airflow": root.removesuffix("/streamwarden") + "/",
        "assets": _assets_version(),
        "version": VERSION,
    }
    return HTMLResponse(render(template, address | values), status)


def _root(request: Request) -> str:
    return str(request.scope.get("root_path", "")).rstrip("/")


def _other_release() -> str:
    """Why the schema of the warehouse is not that of this release; empty if it is, or cannot be read."""
    try:
        migrated_warehouse(load_config())
    except (StreamwardenError, SQLAlchemyError) as error:
        return str(error) if isinstance(error, StreamwardenError) else ""
    return ""


def _path_of(request: Request) -> str:
    """Path and query of a request, without the host: the client chooses the Host header."""
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")


def _in_utc(moment: datetime | None) -> datetime | None:
    """A time of a form, which is UTC unless it has a zone."""
    if moment is None or moment.tzinfo is None:
        return moment.replace(tzinfo=UTC) if moment else None
    try:
        return moment.astimezone(UTC)
    except OverflowError:  # beyond the years 1 to 9999, where a zone makes no difference to the answer
        return moment.replace(tzinfo=UTC)


def _problem(request: Request, status: int, heading: str, text: str) -> HTMLResponse:
    return _page(request, "problem.html", {"heading": heading, "text": text, "place": ""}, status)


def _wants_page(request: Request) -> bool:
    return request.method in ("GET", "HEAD", "POST") and "text/html" in request.headers.get("accept", "")


@cache
def _assets_version() -> str:
    return sha256(b"".join((STATIC / name).read_bytes() for name in ASSETS)).hexdigest()[:12]

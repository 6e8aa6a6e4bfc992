"""The application behind the pages: who may see them, what headers they carry, how problems are told.

Airflow doesn't guard what a plugin serves, so everything here asks for Airflow's own login, unknown addresses and
styles included: all routes, the last of which takes every address, hang on one dependency.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
from airflow.api_fastapi.core_api.security import requires_access_view
from fastapi import Depends, FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException as AnyHTTPException

from streamwarden.base.errors import StreamwardenError
from streamwarden.ui import incidents, pages
from streamwarden.ui.render import render

log = logging.getLogger(__name__)
STATIC = Path(__file__).parent / "static"
ASSETS = {
    "style.css": "text/css",
    "frame.js": "text/javascript",
    "icon.svg": "image/svg+xml",
    "icon-dark.svg": "image/svg+xml",
}
HEADERS = {
    # No script but our own file, no style but our own sheet; plots are pictures inside the page.
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "form-action 'self'; frame-ancestors 'self'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
HourQuery = Annotated[str | None, Query(max_length=40)]
Words = Annotated[str | None, Query(max_length=200)]

app = FastAPI(
    title="Streamwarden",
    dependencies=[Depends(requires_access_view(AccessView.PLUGINS))],
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
def now(request: Request) -> HTMLResponse:
    """The fleet now."""
    return _page(request, "now.html", pages.now())


@app.get("/findings")
def findings(
    request: Request,
    severity: Words = None,
    detector: Words = None,
    words: Annotated[str | None, Query(alias="q", max_length=200)] = None,
    after: Words = None,
) -> HTMLResponse:
    """Findings, filtered, a page of them."""
    return _page(request, "findings.html", pages.findings(severity, detector, words, after))


@app.get("/findings/{fingerprint}")
def finding(request: Request, fingerprint: str, hour: HourQuery = None) -> HTMLResponse:
    """One finding."""
    return _page(request, "finding.html", pages.finding(fingerprint, hour))


@app.get("/incidents/{fingerprint}")
def incident(request: Request, fingerprint: str) -> HTMLResponse:
    """The incident that a finding belongs to."""
    return _page(request, "incident.html", incidents.incident(fingerprint))


@app.get("/coverage")
def coverage(request: Request, hour: HourQuery = None) -> HTMLResponse:
    """What was asked and what came."""
    return _page(request, "coverage.html", pages.coverage(hour))


@app.get("/detectors")
def detectors(request: Request) -> HTMLResponse:
    """The catalogue of rules."""
    return _page(request, "detectors.html", pages.detectors())


@app.get("/detectors/{detector}")
def detector(request: Request, detector: str) -> HTMLResponse:
    """One rule."""
    return _page(request, "detector.html", pages.detector(detector))


@app.get("/static/{name}")
def static(name: str) -> Response:
    """A style sheet, script or icon of ours; nothing else."""
    if name not in ASSETS:
        raise HTTPException(404)
    headers = {"Cache-Control": "private, max-age=86400"}  # its address changes with its content
    return FileResponse(STATIC / name, media_type=ASSETS[name], headers=headers)


@app.api_route("/{rest:path}", methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def anything_else(rest: str) -> Response:
    """Unknown addresses ask for the login too."""
    raise HTTPException(404)


@app.exception_handler(AnyHTTPException)
def _refused(request: Request, error: AnyHTTPException) -> Response:
    # A token of another time is refused by 403 as well; a user without the right hears "Forbidden".
    is_stranger = error.status_code == 401 or (error.status_code == 403 and error.detail != "Forbidden")
    if is_stranger and _wants_page(request):
        return RedirectResponse(get_auth_manager().get_url_login(next_url=str(request.url)), status_code=303)
    if is_stranger or not _wants_page(request):
        return JSONResponse({"detail": error.detail}, error.status_code)
    if error.status_code == 403:
        return _problem(request, 403, "You may not see this page", "Ask an Airflow administrator for a viewer's role.")
    return _problem(
        request, error.status_code, "There is no such page", "It may have been a finding that is forgotten."
    )


@app.exception_handler(pages.UnknownError)
def _unknown(request: Request, error: pages.UnknownError) -> Response:
    return _problem(request, 404, "There is no such thing", str(error))


@app.exception_handler(RequestValidationError)
def _bad_question(request: Request, error: RequestValidationError) -> Response:
    first = error.errors()[0]
    return _problem(request, 422, "The address can't be right", f"{first['loc'][-1]}: {first['msg']}.")


@app.exception_handler(StreamwardenError)
def _told(request: Request, error: StreamwardenError) -> Response:
    return _problem(request, 503, "This page can't be made now", str(error))


@app.exception_handler(SQLAlchemyError)
def _warehouse_away(request: Request, error: SQLAlchemyError) -> Response:
    reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
    log.warning("streamwarden page %s: %s", request.url.path, reason)
    missing = "does not exist" in reason
    cure = "Run `streamwarden migrate`." if missing else "Look after PostgreSQL; nothing that was gathered is lost."
    return _problem(request, 503, "The warehouse doesn't answer", f"{reason} {cure}")


@app.exception_handler(Exception)
def _our_fault(request: Request, error: Exception) -> Response:
    log.exception("streamwarden page %s", request.url.path, exc_info=error)
    response = _problem(request, 500, "This page has a fault", "The log of Airflow's API server tells more.")
    response.headers.update(HEADERS)  # made outside the middleware
    return response


def _page(request: Request, template: str, values: dict[str, object], status: int = 200) -> HTMLResponse:
    root = request.scope.get("root_path", "").rstrip("/")
    address = {"root": root, "airflow": root.removesuffix("/streamwarden") + "/", "assets": _assets_version()}
    return HTMLResponse(render(template, address | values), status)


def _problem(request: Request, status: int, heading: str, text: str) -> HTMLResponse:
    return _page(request, "problem.html", {"heading": heading, "text": text, "place": ""}, status)


def _wants_page(request: Request) -> bool:
    return request.method in ("GET", "HEAD") and "text/html" in request.headers.get("accept", "")


@cache
def _assets_version() -> str:
    return sha256(b"".join((STATIC / name).read_bytes() for name in ASSETS)).hexdigest()[:12]

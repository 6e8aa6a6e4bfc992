"""The REST API at `/streamwarden/api/v1`: access, routes, and errors as problem+json.

Airflow does not protect the routes of a plugin. One dependency therefore requires Airflow's login for all routes. A
browser sends Airflow's session cookie with requests of pages on another host of the same site, so a request that
changes data needs the token in the header `Authorization`, which such a page cannot send.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Annotated, Any

from airflow.api_fastapi.auth.managers.models.resource_details import AccessView
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag, requires_access_view
from fastapi import Depends, FastAPI, HTTPException, Query, Request
from fastapi import Path as InPath
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException as AnyHTTPException

from streamwarden.api import models, reading
from streamwarden.api.bounded import BoundedBody
from streamwarden.api.cursor import CursorError
from streamwarden.api.models import MOST, Fingerprint, Page, Severity, Status, Text, TicketState
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.version import VERSION
from streamwarden.rendering.readable import clean
from streamwarden.tickets import responses
from streamwarden.tickets.responses import API, ResponseError

log = logging.getLogger(__name__)
DAG = "hourly"
QUERY_CANCELED = "57014"
HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "same-origin"}
_PROBLEM = {"application/problem+json": {"schema": models.Problem.model_json_schema()}}
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "content": _PROBLEM}
    for status, text in {
        400: "The body is not JSON.",
        401: "Not logged in.",
        403: "The user has no permission.",
        404: "No such object.",
        409: "The response cannot be applied to the finding in its state.",
        422: "A parameter or the body is invalid.",
        503: "The warehouse does not respond.",
    }.items()
}
UNKNOWN: dict[int | str, dict[str, Any]] = {404: ERRORS[404]}
TITLES = {
    401: "Not logged in",
    403: "No permission",
    404: "Not found",
    409: "Nothing was changed",
    422: "Invalid request",
}

Limit = Annotated[int, Query(ge=1, le=MOST, description="Number of items on a page.")]
Cursor = Annotated[str | None, Query(max_length=2000, description="`next_cursor` of the former page.")]
Filter = Annotated[Text | None, Query()]
InFingerprint = Annotated[Fingerprint, InPath(description="Id of the finding.")]
Part = Annotated[Text, InPath()]


def _require_token(request: Request) -> None:
    """Requires the token in the header, because browsers send cookies with requests of other pages too."""
    if not request.headers.get("authorization", "").lower().startswith("bearer "):
        raise HTTPException(401, "Changes need the header `Authorization: Bearer TOKEN`; a cookie is not accepted.")


require_viewer = requires_access_view(AccessView.PLUGINS)
"""Permission to read: that of Airflow to see plugins."""
require_editor = requires_access_dag("PUT", param_dag_id=DAG)
"""Permission to respond: that of Airflow to edit the DAG `hourly`."""

app = FastAPI(
    title="Streamwarden",
    version=VERSION,
    description="Resources, findings, incidents, and consumer lag. Lists are paged: pass `next_cursor` as `cursor`."
    " Times are UTC; null means unknown, and unknown is never healthy.",
    dependencies=[Depends(require_viewer)],
    responses={status: ERRORS[status] for status in (401, 403, 422, 503)},
    docs_url=None,
    redoc_url=None,
    openapi_url=None,
    redirect_slashes=False,
)
app.add_middleware(BoundedBody)


@app.middleware("http")
async def _guard_headers(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    response = await call_next(request)
    response.headers.update(HEADERS)
    return response


@app.get("/openapi.json", include_in_schema=False)
def openapi(request: Request) -> dict[str, Any]:
    """This API as OpenAPI."""
    return {**app.openapi(), "servers": [{"url": str(request.scope.get("root_path", "")) or "/"}]}


@app.get("/resources", response_model=Page[models.Resource], tags=["resources"])
def resources(
    kind: Filter = None, cluster: Filter = None, owner: Filter = None, application: Filter = None,
    limit: Limit = 100, cursor: Cursor = None,
) -> Any:  # fmt: skip
    """Resources that were seen in the newest 24 gathered hours, by key."""
    filters = {"kind": kind, "cluster": cluster, "owner": owner, "application": application}
    return reading.resources(filters, limit, cursor)


@app.get(
    "/resources/{kind}/{key:path}",
    response_model=models.ResourceDetail,
    responses=UNKNOWN,
    tags=["resources"],
)
def resource(kind: Part, key: Part) -> Any:
    """A resource with its dependencies and open findings, e.g. `/resources/broker/orders-prod/3`."""
    return reading.resource(f"{kind}:{key}")


@app.get("/findings", response_model=Page[models.Finding], tags=["findings"])
def findings(
    detector: Filter = None, status: Status | None = None, severity: Severity | None = None, owner: Filter = None,
    cluster: Filter = None, kind: Filter = None, limit: Limit = 100, cursor: Cursor = None,
) -> Any:  # fmt: skip
    """Open findings, worst first, then newest first: those that are firing, and those with an open ticket."""
    filters = {
        "detector": detector, "status": status, "severity": severity, "owner": owner, "cluster": cluster, "kind": kind,
    }  # fmt: skip
    return reading.findings(filters, limit, cursor)


@app.get("/findings/{fingerprint}", response_model=models.FindingDetail, responses=UNKNOWN, tags=["findings"])
def finding(fingerprint: InFingerprint) -> Any:
    """The newest evaluation of a finding, open or not."""
    return reading.finding(fingerprint)


@app.post(
    "/findings/{fingerprint}/responses",
    response_model=models.StoredResponse,
    status_code=201,
    dependencies=[Depends(_require_token), Depends(require_editor)],
    responses={status: ERRORS[status] for status in (400, 404, 409)},
    tags=["findings"],
)
def respond(fingerprint: InFingerprint, response: models.NewResponse, user: GetUserDep) -> Any:
    """Acknowledges or snoozes a finding, reports a false positive, or comments. Requires permission to edit the DAG
    `hourly`. The next run delivers the response to the trackers."""
    who = user.get_name()
    reading.respond(fingerprint, responses.Response(response.verb, who, API, response.text, response.until))
    return {"fingerprint": fingerprint, "who": who, **response.model_dump()}


@app.get("/incidents", response_model=Page[models.Incident], tags=["incidents"])
def incidents(
    state: TicketState | None = None, severity: Severity | None = None, owner: Filter = None,
    limit: Limit = 100, cursor: Cursor = None,
) -> Any:  # fmt: skip
    """Incidents, newest first."""
    return reading.incidents({"state": state, "severity": severity, "owner": owner}, limit, cursor)


@app.get("/incidents/{fingerprint}", response_model=models.IncidentDetail, responses=UNKNOWN, tags=["incidents"])
def incident(fingerprint: InFingerprint) -> Any:
    """The incident that a finding belongs to: root cause, downstream effects, and the evidence."""
    return reading.incident(fingerprint)


@app.get("/clusters/{cluster}/groups", response_model=Page[models.Group], responses=UNKNOWN, tags=["lag"])
def groups(cluster: Part, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """Consumer groups of a cluster in the newest gathered hour, by name."""
    return reading.groups(cluster, limit, cursor)


@app.get(
    "/clusters/{cluster}/groups/{group:path}/lag",
    response_model=models.GroupLag,
    responses=UNKNOWN,
    tags=["lag"],
)
def group_lag(cluster: Part, group: Part, limit: Limit = MOST, cursor: Cursor = None) -> Any:
    """Lag of a consumer group by partition: committed offset, log-end offset, records, seconds, and owning member."""
    return reading.group_lag(cluster, group, limit, cursor)


@app.exception_handler(AnyHTTPException)
def _refused(request: Request, error: AnyHTTPException) -> Response:
    # Airflow rejects an expired token with 403; for a user without permission, the detail is "Forbidden".
    if error.status_code == 403 and error.detail != "Forbidden":
        return _problem(401, "The token is invalid or has expired. Get a new one from /auth/token.")
    if error.status_code == 403 and request.method == "POST":
        return _problem(403, f"Responses require permission to edit the DAG `{DAG}`: ask an administrator.")
    if error.status_code == 403:
        return _problem(403, "Ask an Airflow administrator for the role Viewer.")
    if error.status_code == 401 and error.detail == "Not authenticated":
        return _problem(401, "Send the header `Authorization: Bearer TOKEN`; /auth/token returns a token.")
    return _problem(error.status_code, str(error.detail), error.headers)


@app.exception_handler(RequestValidationError)
def _invalid(_: Request, error: RequestValidationError) -> Response:
    first = error.errors()[0]
    place = ".".join(clean(str(part))[:80] for part in first["loc"][1:]) or str(first["loc"][0])
    status = 400 if first["type"] == "json_invalid" else 422
    return _problem(status, f"{place}: {clean(first['msg'])}.")


@app.exception_handler(CursorError)
def _invalid_cursor(_: Request, error: CursorError) -> Response:
    return _problem(422, str(error))


@app.exception_handler(reading.NotFound)
def _unknown(_: Request, error: reading.NotFound) -> Response:
    return _problem(404, clean(str(error)))


@app.exception_handler(ResponseError)
def _response_failed(_: Request, error: ResponseError) -> Response:
    return _problem(409, clean(str(error)))


@app.exception_handler(StreamwardenError)
def _unavailable(_: Request, error: StreamwardenError) -> Response:
    log.warning("streamwarden API: %s", error)
    return _problem(503, "Streamwarden is not available; see the log of Airflow's API server.")


@app.exception_handler(SQLAlchemyError)
def _warehouse_away(request: Request, error: SQLAlchemyError) -> Response:
    cause = getattr(error, "orig", None)
    log.warning("streamwarden API %s: %s", request.url.path, str(cause or error).strip().splitlines()[0])
    if getattr(cause, "sqlstate", None) == QUERY_CANCELED:
        return _problem(503, f"The query took longer than {reading.TIMEOUT}. Filter more, or lower `limit`.")
    return _problem(503, "The warehouse does not respond; see the log of Airflow's API server.")


@app.exception_handler(Exception)
def _internal_error(request: Request, error: Exception) -> Response:
    log.exception("streamwarden API %s", request.url.path, exc_info=error)
    response = _problem(500, "See the log of Airflow's API server.")
    response.headers.update(HEADERS)  # this response does not pass the middleware
    return response


def _problem(status: int, detail: str, headers: Any = None) -> JSONResponse:
    problem = models.Problem(
        type="about:blank", title=TITLES.get(status, HTTPStatus(status).phrase), status=status, detail=detail
    )
    more = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return JSONResponse(problem.model_dump(), status, {**(headers or {}), **more}, "application/problem+json")

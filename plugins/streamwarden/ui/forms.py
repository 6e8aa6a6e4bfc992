"""Access and CSRF protection of forms that change data, and the check of all text that a request carries.

Airflow's session cookie is `SameSite=Lax`, so forms of other sites are sent without it. A page on another host of the
same site could still send a form. Therefore each form has a token that is signed for its user with Airflow's secret,
and expires.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.core_api.security import requires_access_dag
from airflow.configuration import conf
from fastapi import HTTPException, Request
from fastapi.exceptions import RequestValidationError
from itsdangerous import BadSignature, URLSafeTimedSerializer

from streamwarden.base.errors import StreamwardenError
from streamwarden.rendering.readable import is_storable
from streamwarden.tickets.responses import MAX_SNOOZE, VERBS, Verb

DAG = "hourly"
LASTING = timedelta(hours=12)
SNOOZE = timedelta(days=1)  # default of the form
STORED_FOR = timedelta(minutes=5)  # how long a page repeats that a response was stored

require_editor = requires_access_dag("PUT", param_dag_id=DAG)
"""Permission to respond: that of Airflow to edit the DAG `hourly`."""


class ForgedError(StreamwardenError):
    """The token of a form is missing, invalid, of another user, or expired."""


@dataclass(frozen=True)
class Form:
    """Values of the forms of a page."""

    token: str
    until: str
    """Default end of a snooze (UTC), in the format of `datetime-local`."""
    earliest: str
    latest: str


def form_for(request: Request, user: BaseUser) -> Form | None:
    """The forms of a user; None without permission to respond."""
    try:
        require_editor(request, user)
    except HTTPException:
        return None
    now = datetime.now(UTC)
    until, earliest, latest = now + SNOOZE, now, now + MAX_SNOOZE
    return Form(
        _signer("forms").dumps(str(user.get_id())),
        f"{until:%Y-%m-%dT%H:00}", f"{earliest:%Y-%m-%dT%H:%M}", f"{latest:%Y-%m-%dT%H:%M}",
    )  # fmt: skip


def require_own(token: str, user: BaseUser) -> None:
    """Raises ForgedError unless the token was signed for this user and has not expired."""
    try:
        is_own = _signer("forms").loads(token, max_age=LASTING // timedelta(seconds=1)) == str(user.get_id())
    except BadSignature:
        is_own = False
    if not is_own:
        raise ForgedError("The form has expired, or belongs to another login. Reload the page and respond again.")


def sign_stored(verb: Verb, fingerprint: str, user: BaseUser) -> str:
    """The value of `?stored=` after a response: only a response leads to a page that claims one."""
    return _signer("stored").dumps([verb, fingerprint, str(user.get_id())])


def stored_verb(value: str | None, fingerprint: str, user: BaseUser) -> Verb | None:
    """The response that this user has just given to this finding, by the value of `?stored=`; else None."""
    try:
        signed = _signer("stored").loads(value or "", max_age=STORED_FOR // timedelta(seconds=1))
    except BadSignature:
        return None
    return next((verb for verb in VERBS if signed == [verb, fingerprint, str(user.get_id())]), None)


async def require_text(request: Request) -> None:
    """Refuses a request with text that PostgreSQL cannot store or compare, in its path, query, or form.

    Raises:
        RequestValidationError: names the first such field.
    """
    fields = [("path", name, value) for name, value in request.path_params.items()]
    fields += [("query", name, value) for name, value in request.query_params.multi_items()]
    if request.headers.get("content-type", "").startswith(("application/x-www-form-urlencoded", "multipart/")):
        fields += [("body", name, value) for name, value in (await request.form()).multi_items()]
    for place, name, value in fields:
        if isinstance(value, str) and not (is_storable(value) and is_storable(name)):
            shown = name.encode("ascii", "replace").decode().replace("\0", "?")
            message = "The text has a NUL character, or characters that are not valid Unicode"
            raise RequestValidationError([{"loc": (place, shown), "msg": message}])


def _signer(purpose: str) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(conf.get_mandatory_value("api", "secret_key"), salt=f"streamwarden-{purpose}")

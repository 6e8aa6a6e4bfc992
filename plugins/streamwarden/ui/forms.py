"""Access and CSRF protection of forms that change data.

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
from itsdangerous import BadSignature, URLSafeTimedSerializer

from streamwarden.base.errors import StreamwardenError

DAG = "hourly"
LASTING = timedelta(hours=12)
SNOOZE = timedelta(days=1)  # default of the form

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


def form_for(request: Request, user: BaseUser) -> Form | None:
    """The forms of a user; None without permission to respond."""
    try:
        require_editor(request, user)
    except HTTPException:
        return None
    now = datetime.now(UTC)
    return Form(_signer().dumps(str(user.get_id())), f"{now + SNOOZE:%Y-%m-%dT%H:00}", f"{now:%Y-%m-%dT%H:%M}")


def require_own(token: str, user: BaseUser) -> None:
    """Raises ForgedError unless the token was signed for this user and has not expired."""
    try:
        is_own = _signer().loads(token, max_age=LASTING // timedelta(seconds=1)) == str(user.get_id())
    except BadSignature:
        is_own = False
    if not is_own:
        raise ForgedError("The form has expired, or belongs to another login. Reload the page and respond again.")


def _signer() -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(conf.get_mandatory_value("api", "secret_key"), salt="streamwarden-forms")

"""Forms that change something: who may send them, and how we know that a page of ours was the one that did.

Airflow's session cookie is `SameSite=Lax`, so another site's form comes without it. A page on a sister host of the same
site still could send one, so each form holds a token that is signed for its user (with Airflow's own secret) and runs
out; nobody else can read it.
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
SNOOZE = timedelta(days=1)  # what the form proposes

require_editor = requires_access_dag("PUT", param_dag_id=DAG)
"""Airflow's own roles decide: who may edit the DAG that files the tickets may answer them."""


class ForgedError(StreamwardenError):
    """A form that no page of ours made for this user, or one that is too old."""


@dataclass(frozen=True)
class Form:
    """What a page needs to show its forms."""

    token: str
    until: str
    """The end that a snooze is proposed, as `datetime-local` has it (UTC)."""
    earliest: str


def form_for(request: Request, user: BaseUser) -> Form | None:
    """The forms of a user; none for who may only read."""
    try:
        require_editor(request, user)
    except HTTPException:
        return None
    now = datetime.now(UTC)
    return Form(_signer().dumps(str(user.get_id())), f"{now + SNOOZE:%Y-%m-%dT%H:00}", f"{now:%Y-%m-%dT%H:%M}")


def require_own(token: str, user: BaseUser) -> None:
    """Raises ForgedError unless the token was made for this user, and lately."""
    try:
        is_own = _signer().loads(token, max_age=LASTING // timedelta(seconds=1)) == str(user.get_id())
    except BadSignature:
        is_own = False
    if not is_own:
        raise ForgedError("The form has expired, or belongs to another login. Reload the page and respond again.")


def _signer() -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(conf.get_mandatory_value("api", "secret_key"), salt="streamwarden-forms")

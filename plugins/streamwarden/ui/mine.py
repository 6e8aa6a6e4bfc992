"""The owners that a login belongs to, by the config's `owners`: the link Mine filters by them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from streamwarden.base.config import Config
from streamwarden.store.queries import Row

if TYPE_CHECKING:
    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser


def owners_of(config: Config, user: BaseUser) -> list[str]:
    """Owners with the login under `users`, or one of its roles or teams under `roles`; sorted.

    Airflow's auth managers name roles differently: one `role`, or `roles` that have a name; some have `teams`.
    """
    roles = {getattr(user, "role", None), *getattr(user, "teams", ())}
    roles |= {getattr(role, "name", role) for role in getattr(user, "roles", ())}
    name = user.get_name()
    return sorted({one.owner for one in config.owners if name in one.users or roles & {*one.roles}})


def mine(config: Config, user: BaseUser | None) -> Row | None:
    """The link Mine of a login: its owners, and the query of an address; None without owners."""
    owners = owners_of(config, user) if user else []
    return {"owners": owners, "query": urlencode({"owner": owners}, doseq=True)} if owners else None

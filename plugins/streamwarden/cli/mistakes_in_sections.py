"""Mistakes that any section of a config can have: logins, AWS names, addresses, and timeouts, wherever they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

from streamwarden.base.config import Config, JmxEndpoint
from streamwarden.base.config.aws import AwsAccount, AwsLogin
from streamwarden.base.config.confluent import ConfluentCluster
from streamwarden.base.config.interfaces import ExternalLink
from streamwarden.base.config.kafka import MskClusters, SchemaRegistry
from streamwarden.base.config.model import Warehouse
from streamwarden.base.config.trackers import Credentials, Mail, Webhook

Where = tuple[str | int, ...]
Mistake = tuple[Where, str]
"""Path of the key, and a sentence: what is wrong and how to fix it."""
LONGEST_TIMEOUT_SECONDS = 600
"""A source that does not respond must not hold up a run until the next one begins."""
_ADDRESSES = ("url", "api_url", "ui_url")
_MAY_HAVE_A_QUERY = (ExternalLink, JmxEndpoint, Warehouse, Webhook)


def in_sections(config: Config) -> Iterator[Mistake]:
    """Mistakes of all sections, in the order of the file's keys."""
    accounts = {one.account for one in config.aws} | {one.account for one in config.msk}
    for where, section in sections(config):
        values = vars(section)
        if "password" in values and not isinstance(section, Credentials):
            yield from login(where, values)
        else:
            yield from secrets(where, values)
        yield from _basic_user(where, section)
        yield from _aws(where, section, accounts)
        for key in _ADDRESSES:
            address = values.get(key)
            if (
                address
                and not isinstance(section, _MAY_HAVE_A_QUERY)
                and re.search("[?#]", address.partition("?aws_")[0])
            ):
                yield (*where, key), "must not contain ? or #: paths are appended to it"
        if values.get("timeout_seconds", 0) > LONGEST_TIMEOUT_SECONDS:
            why = f"must be at most {LONGEST_TIMEOUT_SECONDS} s: a source that does not respond holds up the run"
            yield (*where, "timeout_seconds"), why


def sections(section: BaseModel, where: Where = ()) -> Iterator[tuple[Where, BaseModel]]:
    """A section and all sections in it, with their paths."""
    yield where, section
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        named = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, one in [((), value), *(((key,), one) for key, one in named)]:
            if isinstance(one, BaseModel):
                yield from sections(one, (*where, field.alias or name, *key))


def login(where: Where, values: Mapping[str, Any]) -> Iterator[Mistake]:
    """User and password must be set together, and must fit into an HTTP header."""
    if values.get("password") and not values.get("user"):
        yield (*where, "password"), "needs `user`: without it the password is not sent; set both, or none"
    if values.get("user") and not values.get("password"):
        yield (*where, "user"), "needs `password`, as ${NAME}; set both, or none"
    yield from secrets(where, values)


def secrets(where: Where, values: Mapping[str, Any]) -> Iterator[Mistake]:
    """User, password, and tokens must fit into an HTTP header."""
    for key in ("user", "password", "api_token", "token", "key", "secret"):
        value = values.get(key)
        if isinstance(value, str) and (value != value.strip() or not value.isascii() or not value.isprintable()):
            why = (
                "contains a line break, leading or trailing white space, or a non-ASCII character; remove it: HTTP"
                " headers do not allow it"
            )
            yield (*where, key), why


def _basic_user(where: Where, section: BaseModel) -> Iterator[Mistake]:
    """A colon separates user and password in HTTP basic authentication."""
    name = "key" if isinstance(section, ConfluentCluster) else "user"
    is_basic = not isinstance(section, Mail) and getattr(section, "protocol", "") != "jmx_rmi"
    if is_basic and ":" in (getattr(section, name, None) or ""):
        yield (*where, name), "must not contain a colon: in HTTP basic authentication it begins the password"


def _aws(where: Where, section: BaseModel, accounts: set[str]) -> Iterator[Mistake]:
    named: list[tuple[Where, str]] = [
        (("regions", n), region) for n, region in enumerate(getattr(section, "regions", ()))
    ]
    named += [(("region",), region)] if (region := getattr(section, "region", None)) else []
    for key, region in named:
        if region not in _regions():
            why = "botocore does not know this region; use a name that `aws ec2 describe-regions` lists"
            yield (*where, *key), why
    if isinstance(section, AwsLogin | SchemaRegistry) and section.account and section.account not in accounts:
        yield (*where, "account"), "is neither under `aws` nor under `msk`; add it there, with its role"
    if isinstance(section, AwsAccount | MskClusters):
        yield from _role(where, section)


def _role(where: Where, section: AwsAccount | MskClusters) -> Iterator[Mistake]:
    role = re.fullmatch(r"arn:aws[a-z-]*:iam::(\d{12}):role/[\w+=,.@/-]{1,576}", section.role_arn or "")
    if section.role_arn and not role:
        why = f"is not the ARN of a role; example: arn:aws:iam::{section.account}:role/streamwarden-read"
        yield (*where, "role_arn"), why
    elif role and role[1] != section.account:
        why = f"is a role of account {role[1]}; set a role of account {section.account}, or correct `account`"
        yield (*where, "role_arn"), why
    if section.external_id and not section.role_arn:
        yield (*where, "external_id"), "is only used with a role: set `role_arn`, or remove this key"
    if section.external_id and not re.fullmatch(r"[\w+=,.@:/-]{2,1224}", section.external_id, re.ASCII):
        yield (*where, "external_id"), "must have 2 to 1224 letters, digits, or characters of +=,.@:/-"


@cache
def _regions() -> set[str]:
    from botocore.session import Session  # takes a second, so only for configs with AWS accounts

    session = Session()
    partitions = session.get_available_partitions()
    return {region for one in partitions for region in session.get_available_regions("ec2", one)}

"""IAM authentication of Amazon RDS and Aurora: a warehouse URL with `aws_iam=true` logs in with a signed token.

A token is valid for 15 minutes and only counts when a connection is made; each new connection gets its own. See
https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/UsingWithRDS.IAMDBAuth.Connecting.html
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa

from streamwarden.base.errors import StreamwardenError
from streamwarden.base.url_markers import uses_iam, without_markers

_ENDPOINT = re.compile(r"\.([a-z]{2}(?:-[a-z]+)+-\d)\.rds\.amazonaws\.com(?:\.cn)?$")


def with_password(url: str) -> str:
    """The URL as libpq connects with it: with `aws_iam=true`, a new token is its password.

    Raises:
        StreamwardenError: see `iam_token`.
    """
    if not uses_iam(url):
        return without_markers(url)
    head, at, rest = without_markers(url).partition("@")
    return f"{head}:{quote(iam_token(url), safe='')}{at}{rest}"


def iam_token(url: str) -> str:
    """A token for the host, port, and user of the URL, from boto3's default credentials.

    Raises:
        StreamwardenError: the URL has a password or no user, there are no credentials, or the region is not known.
    """
    from botocore.exceptions import BotoCoreError

    address = sa.make_url(without_markers(url))
    if address.password or not (address.username and address.host):
        raise StreamwardenError("warehouse.url: aws_iam=true needs a user and a host, and no password.")
    found = _ENDPOINT.search(address.host)
    try:
        token = _rds(found[1] if found else None).generate_db_auth_token(
            DBHostname=address.host, Port=address.port or 5432, DBUsername=address.username
        )
    except BotoCoreError as error:
        raise StreamwardenError(f"warehouse.url: no IAM token for {address.host}: {error}") from error
    return str(token)


@cache
def _rds(region: str | None) -> Any:
    """Client that signs tokens; without a region in the host's name, that of the AWS configuration counts."""
    import boto3

    return boto3.Session().client("rds", region_name=region)

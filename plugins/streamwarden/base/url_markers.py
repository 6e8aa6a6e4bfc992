"""Parameters of a warehouse URL that are ours: libpq does not know them."""

from __future__ import annotations

import re

_IAM = re.compile(r"(?<=[?&])aws_iam=true(?:&|$)")
_POOLER = re.compile(r"(?<=[?&])pooler=transaction(?:&|$)")


def uses_iam(url: str) -> bool:
    """Whether the URL has `aws_iam=true`: it logs in with a token of RDS."""
    return _IAM.search(url) is not None


def is_pooled(url: str) -> bool:
    """Whether the URL has `pooler=transaction`: each transaction may run in another session of PostgreSQL."""
    return _POOLER.search(url) is not None


def without_markers(url: str) -> str:
    """The URL without these parameters."""
    if not (uses_iam(url) or is_pooled(url)):
        return url
    return _POOLER.sub("", _IAM.sub("", url)).rstrip("?&")

"""What the values of many keys have in common: names, addresses, severities."""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import ip_address
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from streamwarden.base.config.sql_pattern import compiles_in_postgres


def begins_with(*schemes: str) -> Callable[[str], str]:
    """A check that a URL has one of these schemes, and a host. Whitespace would end it early somewhere."""

    def check(url: str) -> str:
        try:
            parts = urlsplit(url)
            is_one = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
        except ValueError:  # brackets, or a port that is none
            is_one = False
        if not is_one or any(c.isspace() or not c.isprintable() for c in url):
            raise ValueError(f"must be an address that begins with {' or '.join(f'{s}://' for s in schemes)}")
        return url

    return check


def holds_no_password(url: str) -> str:
    """Libraries write the addresses that they ask into logs."""
    if "@" in urlsplit(url).netloc:
        raise ValueError("must not hold a user or a password: they have keys of their own")
    return url


def _is_encrypted_or_here(url: str) -> str:
    """Credentials go with every request."""
    parts = urlsplit(url)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise ValueError("must begin with https://: credentials are sent there (http:// only to this machine)")
    return url


def is_loopback(host: str) -> bool:
    """Whether it is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_mail_address(text: str) -> bool:
    """Whether it is an address as every mail server takes it: ASCII, on one line, local@domain."""
    return re.fullmatch(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?", text) is not None


def _is_mail_address(text: str) -> str:
    if not is_mail_address(text):
        raise ValueError("must be a mail address, name@domain, in ASCII (a domain beyond it as xn--…)")
    return text


def _is_sender(text: str) -> str:
    """An address, or `Name <address>`."""
    named = re.fullmatch(r"([^<>,;:@\"\\]+) <([^<>]+)>", text)
    if not (is_mail_address(text) or (named and named[1].isprintable() and is_mail_address(named[2]))):
        raise ValueError("must be a mail address, name@domain or Name <name@domain>, on one line")
    return text


def _is_one_line(text: str) -> str:
    if not text.isprintable() or not text.strip():
        raise ValueError("must be one line of text, without control characters")
    return text


def _is_part_of_a_key(text: str) -> str:
    """Keys of things hold it between slashes: `broker:orders-prod/3`."""
    if "/" in text or text != text.strip():
        raise ValueError("must hold no slash, and no white space at its ends: it is part of keys and addresses")
    return text


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return pattern


def _compiles_if_pattern(wanted: str) -> str:
    return _compiles(wanted) if wanted.startswith("^") else wanted


def _names_the_job(pattern: str) -> str:
    if "job" not in re.compile(_compiles(pattern)).groupindex:
        raise ValueError(f"'{pattern}' has no group (?P<job>…), which tells whose the topic is")
    return pattern


def is_meant(wanted: str, value: str) -> bool:
    """Whether a value is the wanted one (a `Wanted`), or matches it where that begins with ^."""
    return re.search(wanted, value) is not None if wanted.startswith("^") else wanted == value


Severity = Literal["critical", "warning", "info"]
Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_is_one_line)]
ClusterName = Annotated[Name, AfterValidator(_is_part_of_a_key)]
MailAddress = Annotated[str, AfterValidator(_is_mail_address)]
MailSender = Annotated[str, AfterValidator(_is_sender)]
SqlPattern = Annotated[Name, AfterValidator(compiles_in_postgres)]
"""A regular expression that PostgreSQL runs."""
JobPattern = Annotated[Name, AfterValidator(_names_the_job)]
Wanted = Annotated[str, AfterValidator(_compiles_if_pattern)]
"""A value, or a regular expression where it begins with ^."""
WebAddress = Annotated[str, AfterValidator(begins_with("http", "https")), AfterValidator(holds_no_password)]
SafeAddress = Annotated[WebAddress, AfterValidator(_is_encrypted_or_here)]


class Section(BaseModel):
    """A part of the config. An unknown key is an error, so that a typing slip can't switch something off in silence."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

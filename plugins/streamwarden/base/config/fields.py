"""Types of config values that several keys share: names, addresses, patterns, severities."""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import ip_address
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from streamwarden.base.config.sql_pattern import compiles_in_postgres


def begins_with(*schemes: str) -> Callable[[str], str]:
    """A validator: the URL has one of these schemes, a host, and no white space, at which some libraries cut it off."""

    def check(url: str) -> str:
        try:
            parts = urlsplit(url)
            is_one = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
        except ValueError:  # invalid brackets or port
            is_one = False
        if not is_one or any(c.isspace() or not c.isprintable() for c in url):
            raise ValueError(f"must be an address that begins with {' or '.join(f'{s}://' for s in schemes)}")
        return url

    return check


def holds_no_password(url: str) -> str:
    """A validator: the URL contains no credentials, because libraries write URLs to logs."""
    if "@" in urlsplit(url).netloc:
        raise ValueError("must not contain a user or a password; set them as `user` and `password`")
    return url


def is_encrypted_or_here(url: str) -> str:
    """Requires HTTPS, because every request carries credentials."""
    parts = urlsplit(url)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise ValueError("must begin with https://: credentials are sent there (http:// is allowed for localhost)")
    return url


def is_loopback(host: str) -> bool:
    """Whether the host name or address is a loopback address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_mail_address(text: str) -> bool:
    """Whether the text is an address that every mail server accepts: ASCII, on one line, local@domain."""
    word, label = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+", "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
    address = re.fullmatch(rf"({word}(?:\.{word})*)@{label}(?:\.{label})*", text)
    return address is not None and len(address[1]) <= 64 and len(text) <= 254


def _is_mail_address(text: str) -> str:
    if not is_mail_address(text):
        raise ValueError("must be a mail address, name@domain, in ASCII (an internationalized domain as xn--…)")
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
    """Keys of resources are separated by slashes: `broker:orders-prod/3`."""
    if "/" in text or text != text.strip():
        raise ValueError("must not contain a slash, or leading or trailing white space: keys and URLs contain it")
    if text in (".", ".."):
        raise ValueError("must not be . or ..: browsers remove them from URLs")
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
        raise ValueError(f"'{pattern}' has no group (?P<job>…) for the name of the job")
    return pattern


def is_meant(wanted: str, value: str) -> bool:
    """Whether a value equals a `Wanted`, or matches it if it begins with ^."""
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
"""A value, or a regular expression if it begins with ^."""
WebAddress = Annotated[str, AfterValidator(begins_with("http", "https")), AfterValidator(holds_no_password)]
SafeAddress = Annotated[WebAddress, AfterValidator(is_encrypted_or_here)]


class Section(BaseModel):
    """A section of the config. An unknown key is an error, so that a typo cannot disable a setting unnoticed."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

"""Mistakes that loading a config does not detect: `streamwarden config check` reports each with its key and a fix.

Loading validates each value by itself. These checks compare values with other keys, the warehouse's tables, the file
system, and the date; `mistakes_in_sections` has those of all sections.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict
from pydantic import ValidationError

from streamwarden.base.addresses import masked
from streamwarden.base.catalog import KINDS
from streamwarden.base.config import Config, JmxEndpoint
from streamwarden.base.config.fields import is_mail_address
from streamwarden.base.config.trackers import Github, Jira, Mail, PagerDuty, Roundup, ServiceNow
from streamwarden.base.paths import PROJECT_ROOT, SQL
from streamwarden.base.url_markers import without_markers
from streamwarden.cli.mistakes_in_sections import Mistake, Where, in_sections, login

SAMPLING_SECONDS = 1800
"""Maximum duration of JMX sampling in each hour: a run must end before the next begins."""
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?=[A-Za-z0-9_]))*(?<=[A-Za-z0-9])\.?"
_SERVER = re.compile(rf"(\[[0-9A-Fa-f:.]+\]|{_NAME}):(\d{{1,5}})")
_HOST = re.compile(rf"{_NAME}|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")
_SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_PORTS = {465: "tls", 587: "starttls"}
_MATCHER = r'\s*[A-Za-z_]\w*\s*(?:=~|!~|!=|=)\s*(?:"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|`[^`]*`)\s*'
_OF_THE_CLUSTER = ("bootstrap.servers", "metadata.broker.list")
_OURS = {
    "jira": ("project", "issuetype", "summary", "description"),
    "servicenow": ("short_description", "description", "correlation_id", "correlation_display", "urgency"),
}
"""Fields of a new ticket that `fields` may not set, because Streamwarden finds the ticket by them."""


def mistakes(config: Config, subjects: frozenset[str], now: datetime | None = None) -> Iterator[Mistake]:
    """All mistakes of a config.

    Args:
        subjects: names of the folders in `sql/detectors`.
        now: the time at which exceptions expire; default: the current time.
    """
    yield from _warehouse(config)
    yield from in_sections(config)
    yield from _msk(config)
    yield from _confluent(config)
    yield from _kubernetes(config)
    yield from _kafka(config)
    yield from _jmx(config)
    yield from _trackers(config)
    for number, route in enumerate(config.tickets.routes):
        if route.subject and route.subject not in subjects:
            there = ", ".join(sorted(subjects))
            yield ("tickets", "routes", number, "subject"), f"no detector has this subject; choose one of {there}"
    yield from _patterns(config)
    yield from _exceptions(config, (now or datetime.now(UTC)))
    seconds = (config.gathering.jmx_samples - 1) * config.gathering.jmx_sample_seconds
    if seconds > SAMPLING_SECONDS:
        why = (
            f"jmx_samples and jmx_sample_seconds result in {seconds:,.0f} s of sampling per hour; lower one of them:"
            f" the limit is {SAMPLING_SECONDS:,} s"
        )
        yield ("gathering", "jmx_samples"), why
    yield from _folder(("reports", "folder"), config.reports.folder)


def _warehouse(config: Config) -> Iterator[Mistake]:
    settings, tables = config.warehouse, partitioned_tables()
    for table in sorted(settings.retention_days.keys() - tables):
        why = f"the warehouse has no partitioned table of this name; choose one of {', '.join(sorted(tables))}"
        yield ("warehouse", "retention_days", table), why
    ports = re.findall(r":(\d+)(?=[,/?]|$)", (settings.url or "").partition("://")[2].rpartition("@")[2].split("/")[0])
    if any(not 0 < int(port) < 65_536 for port in ports):
        yield ("warehouse", "url"), "the port must be between 1 and 65535; PostgreSQL's default is 5432"
    yield from _connection_options(settings.url)
    if not settings.url:
        yield from _folder(("warehouse", "data_folder"), settings.data_folder)


def _connection_options(url: str | None) -> Iterator[Mistake]:
    """libpq names an unknown option; an unknown sslmode only when it connects."""
    try:
        options = conninfo_to_dict(without_markers(url or ""))
    except ProgrammingError as error:
        yield ("warehouse", "url"), f"libpq refuses it: {' '.join(masked(str(error)).split())}"
        return
    if (mode := options.get("sslmode")) and mode not in _SSL_MODES:
        yield ("warehouse", "url"), f"has an unknown sslmode; choose one of {', '.join(_SSL_MODES)}"


def partitioned_tables() -> set[str]:
    """Names of the tables with a retention, read from the migrations: single statements, and loops over a list."""
    tables = set()
    for file in (SQL / "migrations").glob("*.sql"):
        text = re.sub("--.*", "", file.read_text())
        tables |= set(re.findall(r"create table (\w+\.\w+) \([^;]*?\) partition by range", text))
        if "create table %s" in text:
            tables |= set(re.findall(r"'(\w+\.\w+)'", text))
    return tables


def _folder(where: Where, folder: Path) -> Iterator[Mistake]:
    path = PROJECT_ROOT / folder
    there = next((one for one in (path, *path.parents) if one.exists()), path)
    if there.exists() and not there.is_dir():
        yield where, f"{there} is a file; set a folder, or move the file"


def _msk(config: Config) -> Iterator[Mistake]:
    for number, entry in enumerate(config.msk):
        for key in ("certificate", "key"):
            if (file := getattr(entry, key)) and not Path(file).is_file():
                yield ("msk", number, key), "there is no such file"


def _confluent(config: Config) -> Iterator[Mistake]:
    names = [cluster.name for cluster in config.kafka]
    for number, entry in enumerate(config.confluent):
        if entry.cluster not in names:
            why = f"no cluster under `kafka` has this name; clusters: {', '.join(names) or 'none'}"
            yield ("confluent", number, "cluster"), why


def _kubernetes(config: Config) -> Iterator[Mistake]:
    for number, entry in enumerate(config.kubernetes):
        if entry.kubeconfig and not entry.kubeconfig.expanduser().is_file():
            yield ("kubernetes", number, "kubeconfig"), "there is no such file"


def _kafka(config: Config) -> Iterator[Mistake]:
    for number, cluster in enumerate(config.kafka):
        where: Where = ("kafka", number)
        if wrong := [one for one in cluster.bootstrap_servers.split(",") if not _is_server(one.strip())]:
            why = (
                f"'{wrong[0].strip()}' is not host:port (port 1 to 65535); separate several servers by commas, and"
                " set a protocol as security.protocol under `client`"
            )
            yield (*where, "bootstrap_servers"), why
        for name in _OF_THE_CLUSTER:
            if name in cluster.client:
                yield (*where, "client", name), "duplicates `bootstrap_servers`; remove this key"
        if cluster.aws_login is None:
            yield from _sasl((*where, "client"), cluster.client)


def _sasl(where: Where, client: Mapping[str, str]) -> Iterator[Mistake]:
    if ("sasl.username" in client) != ("sasl.password" in client):
        yield where, "has only one of sasl.username and sasl.password; set both, or none"
    protocol = client.get("security.protocol", "plaintext").lower()
    if not protocol.startswith("sasl_") and (key := next((key for key in client if key.startswith("sasl.")), None)):
        why = f"has no effect with security.protocol {protocol}; set security.protocol: SASL_SSL, or remove this key"
        yield (*where, key), why


def _is_server(text: str) -> bool:
    server = _SERVER.fullmatch(text)
    if server is None or not 0 < int(server[2]) < 65_536:
        return False
    host = server[1].strip("[]")
    try:
        return not re.fullmatch(r"[\d.]+|.*:.*", host) or bool(ip_address(host))
    except ValueError:
        return False


def _jmx(config: Config) -> Iterator[Mistake]:
    for number, endpoint in enumerate(config.jmx):
        is_rmi = endpoint.url.startswith("rmi://")
        if is_rmi != (endpoint.protocol == "jmx_rmi"):
            yield ("jmx", number, "url"), f"does not fit `protocol: {endpoint.protocol}`: only jmx_rmi has rmi://"
        elif is_rmi and urlsplit(endpoint.url).port is None:
            yield ("jmx", number, "url"), "has no port; write host:port of the JMX-RMI registry"
        if endpoint.match and not re.fullmatch(rf"{_MATCHER}(?:,{_MATCHER})*,?\s*", endpoint.match):
            why = 'must be label matchers without braces, separated by commas; example: instance="10.0.0.5:7071"'
            yield ("jmx", number, "match"), why
        if endpoint.instance_id and not re.fullmatch(r"i-[0-9a-f]{1,32}", endpoint.instance_id):
            yield ("jmx", number, "instance_id"), "is not the id of an EC2 instance; example: i-0123456789abcdef0"
    for number, files in enumerate(config.jmx_files):
        if (PROJECT_ROOT / files.path).is_dir():
            yield ("jmx_files", number, "path"), f"is a folder; set a pattern of files: {files.path.rstrip('/')}/*.json"
        yield from _defaults(config, ("jmx_files", number, "defaults"), files.defaults)
    for number, found in enumerate(config.jmx_ec2):
        yield from _defaults(config, ("jmx_ec2", number, "defaults"), found.defaults)
        given = found.defaults.keys() | found.from_tags.keys()
        for key in ("role", "app") if found.defaults.get("role") == "app" else ("role",):
            if key not in given:
                yield ("jmx_ec2", number, "defaults"), f"needs `{key}`, or `from_tags` the tag with it"


def _defaults(config: Config, where: Where, defaults: Mapping[str, Any]) -> Iterator[Mistake]:
    """Defaults follow the rules of entries under `jmx`: an existing cluster, and valid values."""
    yield from login(where, defaults)
    names = [cluster.name for cluster in config.kafka]
    if not (config.msk or config.kubernetes) and "cluster" in defaults and defaults["cluster"] not in names:
        yield (*where, "cluster"), f"no cluster under `kafka` has this name; clusters: {', '.join(names) or 'none'}"
    try:
        JmxEndpoint.model_validate({"role": "app", "app": "a", "cluster": "c", "url": "http://h", **defaults})
    except ValidationError as error:
        for each in error.errors():
            if each["loc"] and each["loc"][0] in defaults:
                yield (*where, each["loc"][0]), each["msg"].removeprefix("Value error, ")


def _trackers(config: Config) -> Iterator[Mistake]:
    for name, tracker in config.tickets.trackers.items():
        where: Where = ("tickets", "trackers", name)
        password, user = getattr(tracker, "password", None), getattr(tracker, "user", None)
        is_cloud = isinstance(tracker, Jira) and tracker.edition == "cloud"
        if (isinstance(tracker, Roundup | Mail) or is_cloud) and password and not user:
            yield (*where, "password"), "needs `user`: a password alone is no login; set both"
        if isinstance(tracker, Mail) and user and not (password or tracker.connection):
            yield (*where, "user"), "needs `password`, as ${NAME}, or `connection`"
        if is_cloud and user and not is_mail_address(user):
            yield (*where, "user"), "must be the mail address of an Atlassian account"
        if isinstance(tracker, PagerDuty) and tracker.api_token and user and not is_mail_address(user):
            yield (*where, "user"), "must be the mail address of a PagerDuty user, who becomes the author of notes"
        if isinstance(tracker, Mail) and not _HOST.fullmatch(tracker.host):
            yield (*where, "host"), "must be a host name without a port; set the port as `port`"
        if isinstance(tracker, Mail) and {tracker.security, usual := _PORTS.get(tracker.port)} == {"tls", "starttls"}:
            yield (*where, "security"), f"does not fit port {tracker.port}: set `{usual}`, or another port"
        if isinstance(tracker, Github) and urlsplit(tracker.url).hostname in ("github.com", "www.github.com"):
            yield (*where, "url"), "is not the address of the API: remove this key"
        if isinstance(tracker, Jira | ServiceNow):
            for key in sorted(tracker.fields.keys() & set(_OURS[tracker.kind])):
                yield (*where, "fields", key), "is set by Streamwarden, which finds tickets by it; remove this key"


def _exceptions(config: Config, now: datetime) -> Iterator[Mistake]:
    for detector, settings in config.detectors.items():
        for number, exception in enumerate(settings.exceptions):
            if not exception.holds_in(now):
                why = "has expired; remove the exception, or set a later day"
                yield ("detectors", detector, "exceptions", number, "until"), why


def _patterns(config: Config) -> Iterator[Mistake]:
    """Keys of resources begin with their kind: `group:orders-prod/billing`."""
    patterns = [(("owners", n, "key_pattern"), one.key_pattern or "", {*KINDS}) for n, one in enumerate(config.owners)]
    patterns += [
        (("latency_targets", n, "key_pattern"), one.key_pattern, {"application"})
        for n, one in enumerate(config.latency_targets)
    ]
    for where, pattern, kinds in patterns:
        begun = re.match(r"\^(?:\((?:\?:)?)?([a-z_|]+)\)?:", pattern)
        if begun and (unknown := [kind for kind in begun[1].split("|") if kind not in kinds]):
            yield where, f"no key begins with {unknown[0]}: here; choose from {', '.join(sorted(kinds))}"

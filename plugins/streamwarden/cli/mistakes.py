"""Mistakes that loading a config does not detect: `streamwarden config check` reports each with its key and a fix.

Loading validates each value by itself. These checks compare values with other keys, the warehouse's tables, the file
system, the date, and the regions of AWS.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from streamwarden.base.config import Config, JmxEndpoint
from streamwarden.base.config.fields import is_mail_address
from streamwarden.base.config.trackers import Jira, Mail, PagerDuty, Roundup, ServiceNow
from streamwarden.base.paths import PROJECT_ROOT, SQL

SAMPLING_SECONDS = 1800
"""Maximum duration of JMX sampling in each hour: a run must end before the next begins."""
Where = tuple[str | int, ...]
Mistake = tuple[Where, str]
"""Path of the key, and a sentence: what is wrong and how to fix it."""
_SERVER = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?):(\d{1,5})")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")
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
    yield from _aws(config)
    yield from _msk(config)
    yield from _kubernetes(config)
    yield from _kafka(config)
    yield from _jmx(config)
    yield from _trackers(config)
    yield from _secrets(("prometheus",), vars(config.prometheus))
    for number, route in enumerate(config.tickets.routes):
        if route.subject and route.subject not in subjects:
            there = ", ".join(sorted(subjects))
            yield ("tickets", "routes", number, "subject"), f"no detector has this subject; choose one of {there}"
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
    if not settings.url:
        yield from _folder(("warehouse", "data_folder"), settings.data_folder)


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


def _aws(config: Config) -> Iterator[Mistake]:
    known = _regions() if config.aws else set()
    for number, account in enumerate(config.aws):
        for position, region in enumerate(account.regions):
            if region not in known:
                why = "botocore does not know this region; use a name that `aws ec2 describe-regions` lists"
                yield ("aws", number, "regions", position), why
        role = re.fullmatch(r"arn:aws[a-z-]*:iam::(\d{12}):role/[\w+=,.@/-]{1,576}", account.role_arn or "")
        if account.role_arn and not role:
            why = f"is not the ARN of a role; example: arn:aws:iam::{account.account}:role/streamwarden-read"
            yield ("aws", number, "role_arn"), why
        elif role and role[1] != account.account:
            why = f"is a role of account {role[1]}; set a role of account {account.account}, or correct `account`"
            yield ("aws", number, "role_arn"), why
        if account.external_id and not account.role_arn:
            yield ("aws", number, "external_id"), "is only used with a role: set `role_arn`, or remove this key"


def _msk(config: Config) -> Iterator[Mistake]:
    known = _regions() if config.msk else set()
    for number, entry in enumerate(config.msk):
        for position, region in enumerate(entry.regions):
            if region not in known:
                why = "AWS has no such region as far as botocore knows; write it as `aws ec2 describe-regions` has it"
                yield ("msk", number, "regions", position), why
        role = re.fullmatch(r"arn:aws[a-z-]*:iam::(\d{12}):role/[\w+=,.@/-]{1,576}", entry.role_arn or "")
        if entry.role_arn and (not role or role[1] != entry.account):
            like = f"arn:aws:iam::{entry.account}:role/streamwarden-read"
            why = f"is no role of account {entry.account}; it looks like {like}"
            yield ("msk", number, "role_arn"), why
        for key in ("certificate", "key"):
            if (file := getattr(entry, key)) and not Path(file).is_file():
                yield ("msk", number, key), "there is no such file"


def _kubernetes(config: Config) -> Iterator[Mistake]:
    for number, entry in enumerate(config.kubernetes):
        if entry.kubeconfig and not entry.kubeconfig.expanduser().is_file():
            yield ("kubernetes", number, "kubeconfig"), "there is no such file"


def _regions() -> set[str]:
    from botocore.session import Session  # takes a second, so only for configs with AWS accounts

    session = Session()
    partitions = session.get_available_partitions()
    return {region for one in partitions for region in session.get_available_regions("ec2", one)}


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
        if ("sasl.username" in cluster.client) != ("sasl.password" in cluster.client):
            yield (*where, "client"), "has only one of sasl.username and sasl.password; set both, or none"
        if cluster.schema_registry:
            yield from _login((*where, "schema_registry"), vars(cluster.schema_registry))


def _is_server(text: str) -> bool:
    server = _SERVER.fullmatch(text)
    return server is not None and 0 < int(server[1]) < 65_536


def _jmx(config: Config) -> Iterator[Mistake]:
    for number, endpoint in enumerate(config.jmx):
        yield from _login(("jmx", number), vars(endpoint))
        if endpoint.instance_id and not re.fullmatch(r"i-[0-9a-f]{1,32}", endpoint.instance_id):
            yield ("jmx", number, "instance_id"), "is not the id of an EC2 instance; example: i-0123456789abcdef0"
    for number, files in enumerate(config.jmx_files):
        yield from _login(("jmx_files", number, "defaults"), files.defaults)
        if (PROJECT_ROOT / files.path).is_dir():
            yield ("jmx_files", number, "path"), f"is a folder; set a pattern of files: {files.path.rstrip('/')}/*.json"
        yield from _defaults(config, ("jmx_files", number, "defaults"), files.defaults)
    for number, found in enumerate(config.jmx_ec2):
        yield from _login(("jmx_ec2", number, "defaults"), found.defaults)
        yield from _defaults(config, ("jmx_ec2", number, "defaults"), found.defaults)


def _defaults(config: Config, where: Where, defaults: Mapping[str, Any]) -> Iterator[Mistake]:
    """Defaults follow the rules of entries under `jmx`: an existing cluster, and valid values."""
    names = [cluster.name for cluster in config.kafka]
    if not (config.msk or config.kubernetes) and "cluster" in defaults and defaults["cluster"] not in names:
        yield (*where, "cluster"), f"no cluster under `kafka` has this name; clusters: {', '.join(names) or 'none'}"
    for key in ("role", "protocol"):
        allowed = JmxEndpoint.model_fields[key].annotation.__args__  # type: ignore[union-attr]
        if key in defaults and defaults[key] not in allowed:
            yield (*where, key), f"must be one of {', '.join(allowed)}"


def _login(where: Where, values: Mapping[str, Any]) -> Iterator[Mistake]:
    """User and password must be set together, and must fit into an HTTP header."""
    if values.get("password") and not values.get("user"):
        yield (*where, "password"), "needs `user`: without it the password is not sent; set both, or none"
    if values.get("user") and not values.get("password"):
        yield (*where, "user"), "needs `password`, as ${NAME}; set both, or none"
    yield from _secrets(where, values)


def _secrets(where: Where, values: Mapping[str, Any]) -> Iterator[Mistake]:
    for key in ("user", "password", "api_token", "token"):
        value = values.get(key)
        if isinstance(value, str) and (value != value.strip() or not value.isascii() or not value.isprintable()):
            why = (
                "contains a line break, leading or trailing white space, or a non-ASCII character; remove it: HTTP"
                " headers do not allow it"
            )
            yield (*where, key), why


def _trackers(config: Config) -> Iterator[Mistake]:
    for name, tracker in config.tickets.trackers.items():
        where: Where = ("tickets", "trackers", name)
        yield from _secrets(where, vars(tracker))
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
        if isinstance(tracker, Jira | ServiceNow):
            for key in sorted(tracker.fields.keys() & set(_OURS[tracker.kind])):
                yield (*where, "fields", key), "is set by Streamwarden, which finds tickets by it; remove this key"


def _exceptions(config: Config, now: datetime) -> Iterator[Mistake]:
    for detector, settings in config.detectors.items():
        for number, exception in enumerate(settings.exceptions):
            if not exception.holds_in(now):
                why = "has expired; remove the exception, or set a later day"
                yield ("detectors", detector, "except", number, "until"), why

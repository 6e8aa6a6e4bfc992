"""The model of `streamwarden.yaml`: keys, types, and validation. docs/config.md is generated from it."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from string import Formatter
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field, model_validator

from streamwarden.base.addresses import address_of
from streamwarden.base.catalog import KINDS
from streamwarden.base.config.fields import (
    ClusterName,
    JobPattern,
    MailSender,
    Name,
    Section,
    Severity,
    SqlPattern,
    Wanted,
    WebAddress,
    begins_with,
    is_meant,
)
from streamwarden.base.config.kubernetes import KubernetesCluster
from streamwarden.base.config.trackers import Console, Mail, Tracker, TrackerName


def _is_postgres(url: str) -> str:
    """Checks only the scheme, because libpq also accepts several hosts, or none (a Unix socket)."""
    if not re.fullmatch(r"postgres(ql)?://\S*", url):
        raise ValueError("must begin with postgresql:// (only PostgreSQL is supported)")
    return url


def _once(what: str, keys: Iterable[Hashable]) -> None:
    """Raises ValueError for a duplicate key."""
    seen: set[Hashable] = set()
    for key in keys:
        if key in seen:
            raise ValueError(f"duplicate {what}: {key}")
        seen.add(key)


Days = Annotated[int, Field(le=36_500)]
Seconds = Annotated[float, Field(gt=0, le=3600)]
JvmAddress = Annotated[str, AfterValidator(begins_with("http", "https", "rmi"))]
PostgresAddress = Annotated[str, AfterValidator(_is_postgres)]
AccountId = Annotated[str, Field(pattern=r"^\d{12}$")]
Region = Annotated[str, Field(pattern=r"^[a-z]{2,4}(-[a-z]+){1,2}-\d{1,2}$")]


class Warehouse(Section):
    """The PostgreSQL database, and the retention of its tables."""

    url: PostgresAddress | None = Field(
        None,
        description="PostgreSQL URL, `postgresql://user:password@host:5432/database`; without a password and with "
        "`?aws_iam=true`: IAM authentication of RDS. Empty: the embedded server.",
    )
    data_folder: Path = Field(
        Path("var/postgres"), description="Data folder of the embedded PostgreSQL, relative to the project."
    )
    sample_retention_days: Days = Field(35, ge=2, description="Retention of samples in days (daily partitions).")
    fact_retention_days: Days = Field(
        455, ge=30, description="Retention of hourly facts and evaluations in days (monthly partitions)."
    )
    retention_days: dict[str, Annotated[Days, Field(ge=2)]] = Field(
        default_factory=dict, description="Retention in days of single tables: `metrics.partition_hourly: 90`."
    )


class AwsAccount(Section):
    """An AWS account with volumes and instances to watch. Credentials come from boto3's default provider chain."""

    account: AccountId = Field(description="The 12-digit account id.")
    regions: list[Region] = Field(min_length=1, description="Regions to read, e.g. eu-central-1.")
    role_arn: str | None = Field(
        None, description="Role to assume in that account; empty: use the credentials directly."
    )
    external_id: str | None = Field(None, description="External id of the role's trust policy.")


class SchemaRegistry(Section):
    """The Schema Registry of a Kafka cluster: Confluent's REST interface, Apicurio's own, or AWS Glue."""

    kind: Literal["confluent", "apicurio", "glue"] = Field(
        "confluent",
        description="`confluent`: Confluent's REST interface, which Karapace has, too. `apicurio`: Apicurio's own (v2,"
        " v3). `glue`: AWS Glue.",
    )
    url: WebAddress | None = Field(
        None,
        description="Its address, e.g. https://registry.internal:8081; Apicurio v2: with /apis/registry/v2. Not for"
        " `glue`.",
    )
    user: str | None = Field(None, description="HTTP basic user or API key, if the registry requires one.")
    password: str | None = Field(None, repr=False, description="Its password or secret, as `${NAME}`.")
    ids: Literal["content", "global"] | None = Field(
        None, description="`apicurio`: which id the values carry; empty: `content` (v3), or `global` (v2)."
    )
    registry: Name = Field("default-registry", description="`glue`: name of the registry.")
    account: AccountId | None = Field(None, description="`glue`: its account (under `aws`).")
    region: Region | None = Field(None, description="`glue`: its region.")
    timeout_seconds: Seconds = Field(10, description="Timeout of a request.")

    @model_validator(mode="after")
    def _has_its_place(self) -> SchemaRegistry:
        if self.kind == "glue" and (self.account is None or self.region is None or self.url is not None):
            raise ValueError("`kind: glue` needs `account` and `region`, and has no `url`")
        if self.kind != "glue" and self.url is None:
            raise ValueError(f"`kind: {self.kind}` needs `url`")
        return self


class ConnectCluster(Section):
    """A Kafka Connect cluster: the REST API of one of its workers, or of a load balancer in front of them."""

    name: Name = Field(description="Name of the Connect cluster in rows, pages, and tickets.")
    url: WebAddress = Field(description="Address of the REST API, e.g. http://connect.internal:8083")
    user: str | None = Field(None, description="HTTP basic user, if the API requires one.")
    password: str | None = Field(None, repr=False, description="Its password, as `${NAME}`.")
    timeout_seconds: Seconds = Field(10, description="Timeout of a request.")


class AwsLogin(Section):
    """How Kafka clients log in to a cluster of Amazon MSK with what AWS holds: an IAM identity, or a secret."""

    account: AccountId = Field(description="The 12-digit account id of the cluster.")
    region: Region = Field(description="Its region.")
    authentication: Literal["iam", "scram"] = Field(
        "iam", description="`iam`: the AWS credentials sign a token. `scram`: user and password of `secret`."
    )
    secret: Name | None = Field(
        None,
        description="`scram`: name or ARN of the secret in AWS Secrets Manager (`AmazonMSK_…`).",
    )

    @model_validator(mode="after")
    def _scram_has_a_secret(self) -> AwsLogin:
        if (self.authentication == "scram") != (self.secret is not None):
            raise ValueError("`secret` names user and password of `authentication: scram`; no other has it")
        return self


class KafkaCluster(Section):
    """One Kafka cluster."""

    name: ClusterName = Field(description="Name of the cluster in rows, pages, and tickets.")
    bootstrap_servers: Name = Field(description="host:port, comma-separated.")
    client: dict[str, str] = Field(
        default_factory=dict,
        description="librdkafka properties, e.g. `security.protocol: SASL_SSL`, `sasl.password: ${KAFKA_PASSWORD}`.",
    )
    aws_login: AwsLogin | None = Field(
        None, description="Amazon MSK: log in with AWS credentials (IAM), or with a secret of AWS Secrets Manager."
    )
    schema_registry: SchemaRegistry | None = Field(None, description="Its Schema Registry, if it has one.")
    connect: list[ConnectCluster] = Field(
        default_factory=list,
        description="Kafka Connect clusters that work on it, to watch their connectors.",
    )


class MskClusters(Section):
    """Amazon MSK clusters of an account: brokers, storage, metrics, and bootstrap addresses come from AWS."""

    account: AccountId = Field(description="The 12-digit account id.")
    regions: list[Region] = Field(
        default_factory=list, description="Regions to search; empty: those of the account under `aws`."
    )
    role_arn: str | None = Field(
        None, description="Role to assume in that account; empty: that of the account under `aws`, or no role."
    )
    external_id: str | None = Field(None, description="External id of the role's trust policy.")
    clusters: Name = Field("*", description="Names of the clusters; * and ? are wildcards: `orders-*`.")
    name: str = Field(
        "{name}",
        pattern=r"^[^/{}]*(\{(name|region|account)\}[^/{}]*)+$",
        description="Name of a cluster in rows, pages, and tickets, made of `{name}`, `{region}`, and `{account}`.",
    )
    authentication: Literal["iam", "scram", "mtls", "none"] = Field(
        "iam",
        description="How Kafka clients log in: `iam`, `scram` (`secret`), `mtls` (`certificate`, `key`), or `none`.",
    )
    secret: Name | None = Field(
        None, description="`scram`: name or ARN of the secret in AWS Secrets Manager (`AmazonMSK_…`)."
    )
    certificate: Path | None = Field(None, description="`mtls`: file of the client certificate (PEM).")
    key: Path | None = Field(None, description="`mtls`: file of its private key (PEM).")
    key_password: str | None = Field(None, repr=False, description="Password of the private key, as `${NAME}`.")
    client: dict[str, str] = Field(
        default_factory=dict, repr=False, description="Further librdkafka properties, e.g. `{ssl.ca.location: …}`."
    )
    reach: Literal["private", "vpc", "public"] = Field(
        "private",
        description="Which addresses are used: of the cluster's VPC, of multi-VPC connectivity, or of public access.",
    )
    connect: bool = Field(
        True,
        description="Read topics, offsets, and groups over Kafka's protocol. Off: CloudWatch and open monitoring.",
    )
    open_monitoring: bool = Field(
        True, description="Read brokers with open monitoring at ports 11001 and 11002. Off: CloudWatch only."
    )
    schema_registry: SchemaRegistry | None = Field(None, description="Schema Registry of these clusters.")

    @model_validator(mode="after")
    def _login_is_complete(self) -> MskClusters:
        if (self.authentication == "scram") != (self.secret is not None):
            raise ValueError("`secret` names user and password of `authentication: scram`; no other has it")
        if (self.authentication == "mtls") != (self.certificate is not None and self.key is not None):
            raise ValueError("`authentication: mtls` needs `certificate` and `key`; no other has them")
        return self


class JmxEndpoint(Section):
    """One JVM whose metrics are read, a broker or an application; or a machine that JVMs run on."""

    role: Literal["broker", "app", "node"] = Field(
        description="What it is: a broker's JVM, an application's, or a machine (node exporter's page)."
    )
    cluster: Name = Field(description="The Kafka cluster it is, or works on (a name under `kafka`).")
    app: Name | None = Field(None, description="Name of the application (role `app`).")
    protocol: Literal["jolokia", "jmx_rmi", "prometheus", "dropwizard", "prometheus_api"] = Field(
        "jolokia",
        description="How the metrics are read: Jolokia agent, JMX-RMI, a page in the Prometheus exposition format (JMX"
        " exporter, MSK open monitoring, Micrometer, node exporter), Dropwizard's metrics servlet (role `app`), or the"
        " API of a Prometheus server, which also has past hours.",
    )
    url: JvmAddress = Field(
        description="Address: http://10.0.0.5:8778/jolokia, http://10.0.0.5:7071/metrics, …; for JMX-RMI 10.0.0.5:9999"
        " (service:jmx:rmi:///jndi/rmi://10.0.0.5:9999/jmxrmi is the same)."
    )
    match: str | None = Field(
        None,
        min_length=1,
        description='Label matchers that select its series in the Prometheus server, e.g. `instance="10.0.0.5:7071"`'
        " (protocol `prometheus_api`).",
    )
    user: str | None = Field(None, description="User (HTTP basic or JMX-RMI), if required.")
    password: str | None = Field(None, repr=False, description="Its password, as `${NAME}`.")
    broker_id: int | None = Field(None, ge=0, lt=2**31, description="Broker id, if it cannot be read from the JVM.")
    instance_id: str | None = Field(
        None, description="Id of its EC2 instance: relates JVMs to their host and its volumes."
    )
    memory_limit_bytes: int | None = Field(
        None, gt=0, le=2**50, description="Memory limit of its container, if it runs in one."
    )
    rocksdb_write_buffer_bytes: int = Field(
        16 * 2**20,
        gt=0,
        le=2**40,
        description="write_buffer_size of its RocksDB stores, which no metric exposes (role `app`).",
    )
    rocksdb_write_buffers: int = Field(3, ge=1, le=1000, description="max_write_buffer_number of its RocksDB stores.")
    timeout_seconds: Seconds = Field(10, description="Timeout of a request.")

    @model_validator(mode="before")
    @classmethod
    def _rmi_is_a_url_too(cls, given: Any) -> Any:
        if not isinstance(given, dict) or given.get("protocol") != "jmx_rmi" or not given.get("url"):
            return given
        address = str(given["url"]).rpartition("/jndi/")[2]
        return {**given, "url": address if "://" in address else f"rmi://{address}/jmxrmi"}

    @model_validator(mode="after")
    def _is_complete(self) -> JmxEndpoint:
        if self.role == "app" and not self.app:
            raise ValueError("an endpoint with role 'app' needs `app`, the application's name")
        if (self.protocol == "prometheus_api") != (self.match is not None):
            raise ValueError(
                "`match` selects the series of a JVM: protocol 'prometheus_api' needs it, no other protocol has it"
            )
        if self.role == "broker" and self.protocol == "dropwizard":
            raise ValueError("brokers have no Dropwizard servlet: read them by 'jolokia', 'jmx_rmi' or 'prometheus'")
        if self.role == "node" and not self.protocol.startswith("prometheus"):
            raise ValueError("a machine is read by node exporter: `protocol: prometheus` (or prometheus_api)")
        return self

    def __str__(self) -> str:
        """Role, cluster, and address, which identify the endpoint; without credentials."""
        of_server = f"{{{self.match}}}" if self.match else ""
        return f"{self.role} of {self.cluster} at {address_of(self.url)}{of_server}"


def _are_keys(defaults: dict[str, str | int | float]) -> dict[str, str | int | float]:
    if unknown := sorted(defaults.keys() - JmxEndpoint.model_fields.keys() | defaults.keys() & {"url"}):
        raise ValueError(f"not a key under `jmx`, or set by each target: {', '.join(unknown)}")
    return defaults


JmxDefaults = Annotated[dict[str, str | int | float], AfterValidator(_are_keys)]


class JmxFiles(Section):
    """JVMs from target files of other programs, in the format of Prometheus' `file_sd_configs`: targets and labels."""

    path: Name = Field(description="JSON or YAML file, or a pattern such as /etc/prometheus/targets/kafka-*.json.")
    defaults: JmxDefaults = Field(
        default_factory=dict,
        repr=False,
        description="Keys of an entry under `jmx` for all targets. The labels role, cluster, app, protocol, broker_id,"
        " instance_id, and memory_limit_bytes override them; `__scheme__` and `__metrics_path__` set parts of the URL.",
    )


class JmxEc2(Section):
    """JVMs (or hosts) on running EC2 instances, found by tags and reached at their private addresses."""

    account: str = Field(description="An account under `aws`; all its regions are searched.")
    tags: dict[str, str] = Field(
        min_length=1, description="Tags of the instances, e.g. `{kafka: orders-prod}`; * and ? are wildcards."
    )
    port: int = Field(ge=1, le=65535, description="Port of the agent or exporter.")
    scheme: Literal["http", "https"] = Field("http", description="Scheme of the URL.")
    path: str | None = Field(
        None, pattern="^/[^?#]*$", description="Path of the URL; empty: /metrics, or the default of the protocol."
    )
    from_tags: dict[Literal["role", "cluster", "app", "broker_id", "memory_limit_bytes"], Name] = Field(
        default_factory=dict,
        description="Keys of an entry under `jmx` and the instance tags with their values, e.g. `{app: application}`.",
    )
    defaults: JmxDefaults = Field(
        default_factory=dict,
        repr=False,
        description="Keys of an entry under `jmx` for all instances; tags override them.",
    )


class Gathering(Section):
    """How sources are read."""

    settle_minutes: int = Field(
        10, ge=0, le=1440, description="Minutes that a run waits after the end of its hour for late data of CloudWatch."
    )
    jmx_samples: int = Field(3, ge=2, le=1000, description="Number of samples of gauges in a run.")
    jmx_sample_seconds: Seconds = Field(5, description="Seconds between two samples.")
    changelog_sample_values: int = Field(
        50_000,
        ge=1000,
        le=100_000_000,
        description="Maximum number of values read from one changelog in an hour; more are sampled evenly.",
    )
    show_example_values: bool = Field(
        False, description="Whether evidence shows values of state stores; if not, they are masked."
    )


class Route(Section):
    """Routes tickets to trackers by their findings. A ticket goes to the trackers of all matching routes."""

    owner: Annotated[Wanted, Field(min_length=1, max_length=200)] | None = Field(
        None, description="Owner of the resource. A value that begins with ^ is a regular expression."
    )
    least_severity: Severity | None = Field(None, description="Lowest severity of the findings.")
    subject: Name | None = Field(None, description="Subject of the detector: its folder in sql/detectors.")
    to: list[Name] = Field(min_length=1, description="Names under `trackers`.")

    def matches(self, owner: str | None, severity: str, subject: str | None) -> bool:
        """Whether the route applies to a ticket with this owner, severity, and subject of its detector."""
        ranks: tuple[str, ...] = get_args(Severity)
        return (
            (self.owner is None or (owner is not None and is_meant(self.owner, owner)))
            and (self.least_severity is None or ranks.index(severity) <= ranks.index(self.least_severity))
            and (self.subject is None or self.subject == subject)
        )


class Tickets(Section):
    """The trackers, the routes to them, and when tickets are created."""

    trackers: dict[TrackerName, Tracker] = Field(
        default_factory=dict, description="The trackers by name; none: tickets are written to the task's log."
    )
    routes: list[Route] = Field(default_factory=list, description="Routes to trackers; none: all to `default`.")
    default: list[Name] | None = Field(
        None, description="Trackers of tickets that no route matches; default: the first under `trackers`."
    )
    max_new_per_run: int = Field(
        20, ge=1, le=10_000, description="Maximum number of new tickets in a run; the others share a summary ticket."
    )
    reopen_within_hours: int = Field(
        72, ge=0, le=8784, description="A finding that fires again within this time reopens its ticket."
    )
    least_severity: Severity = Field(
        "warning", description="Findings of lower severity open no ticket; pages and reports list them."
    )

    @model_validator(mode="before")
    @classmethod
    def _has_trackers(cls, given: Any) -> Any:
        if isinstance(given, dict) and "sink" in given:
            raise ValueError("`sink` and its address are now an entry under `trackers`: see docs/tickets.md")
        return given

    @model_validator(mode="after")
    def _trackers_are_known(self) -> Tickets:
        named = [*(self.default or []), *(name for route in self.routes for name in route.to)]
        if unknown := sorted(set(named) - self.all_trackers.keys()):
            raise ValueError(f"tracker '{unknown[0]}' is not under `trackers`")
        return self

    @property
    def all_trackers(self) -> dict[str, Tracker]:
        """The configured trackers by name; without any, the console."""
        return dict(self.trackers) or {"console": Console(kind="console")}

    def trackers_for(self, owner: str | None, severity: str, subject: str | None) -> list[str]:
        """Names of the trackers for a ticket with this owner, severity, and subject of its detector."""
        found = [name for route in self.routes if route.matches(owner, severity, subject) for name in route.to]
        default = next(iter(self.all_trackers)) if self.default is None else None
        return list(dict.fromkeys(found or ([default] if default else self.default or [])))

    def mailboxes_of(self, owner: str) -> dict[str, Mail]:
        """Trackers of kind mail in the routes of an owner, by name. They also get the owner's report."""
        names = [name for route in self.routes if route.owner and is_meant(route.owner, owner) for name in route.to]
        return {name: tracker for name in names if isinstance(tracker := self.all_trackers[name], Mail)}


class Reports(Section):
    """The scheduled reports."""

    folder: Path = Field(Path("var/reports"), description="Folder of the HTML files, relative to the project.")
    mail_to: list[MailSender] = Field(default_factory=list, description="Recipients; empty: no mail.")
    mail_from: MailSender = Field("streamwarden@localhost", description="Sender.")


class Prometheus(Section):
    """The page `/streamwarden/metrics` for a Prometheus server. Without a token, it is off."""

    token: str | None = Field(
        None, min_length=16, repr=False, description="Bearer token that the server sends, as `${NAME}`."
    )
    connection: Name | None = Field(None, description="Airflow connection that has it as password instead of `token`.")
    lag_series: int = Field(
        1000,
        ge=0,
        le=50_000,
        description="Maximum number of pairs of group and topic with lag series; those that are furthest behind are"
        " exposed.",
    )

    @model_validator(mode="after")
    def _has_one_token(self) -> Prometheus:
        if self.token and self.connection:
            raise ValueError("needs `token` or `connection`, and not both")
        return self


class DetectorException(Section):
    """Resources for which a detector has other parameters, or is off."""

    where: dict[str, Wanted] = Field(
        min_length=1,
        description="Selects resources by the columns of their key, `owner`, or `application`. A value that begins with"
        " ^ is a regular expression. The first exception that matches a resource applies.",
    )
    params: dict[str, float | int | str | bool] = Field(default_factory=dict, description="Parameters to replace.")
    off: bool = Field(False, description="Not evaluated; an open ticket is closed.")
    why: str = Field(min_length=1, description="The reason, shown with the exception.")
    until: date | None = Field(None, description="Last day (UTC); after it, the page shows the exception as expired.")

    @model_validator(mode="after")
    def _changes_something(self) -> DetectorException:
        if self.off == bool(self.params):
            raise ValueError("an exception has either `params` or `off: true`")
        return self

    @property
    def rule(self) -> str:
        """The exception as JSON, its key in the warehouse."""
        return self.model_dump_json(exclude_defaults=True)

    def holds_in(self, hour: datetime) -> bool:
        """Whether the exception has not expired in an hour."""
        return self.until is None or hour.astimezone(UTC).date() <= self.until

    def matches(self, values: Mapping[str, str]) -> bool:
        """Whether the exception applies to a resource with these key columns, owner, and application.

        A resource without one of the columns is not meant, such as a client where the exception names a topic.
        """
        return all(column in values and is_meant(wanted, values[column]) for column, wanted in self.where.items())


class DetectorSettings(Section):
    """Overrides of one detector."""

    enabled: bool = Field(True, description="Whether the detector is evaluated; if not, open tickets stay unchanged.")
    params: dict[str, float | int | str | bool] = Field(default_factory=dict, description="Parameters to replace.")
    exceptions: list[DetectorException] = Field(
        default_factory=list, alias="except", description="Resources with other parameters, or with the detector off."
    )


class CausesSettings(Section):
    """Parameters of the ranking of causes."""

    params: dict[str, float | int] = Field(
        default_factory=dict, description="Parameters to replace; docs/causes.md lists them."
    )


class Owner(Section):
    """The owner of resources with keys that match a pattern, and the logins that have a link to its findings."""

    key_pattern: SqlPattern | None = Field(
        None,
        description="Regular expression on the key of a resource, e.g. `^(group|topic):orders-prod/billing-`; the view"
        " `resource` lists all keys. Without one, the entry only names logins of an owner that is set by tags.",
    )
    owner: Name = Field(description="Name of the owner, who gets the tickets.")
    users: list[Name] = Field(
        default_factory=list, description="Airflow logins of the owner: the link Mine of the pages filters by it."
    )
    roles: list[Name] = Field(
        default_factory=list, description="Airflow roles or teams of the owner; their logins have the link Mine, too."
    )

    @model_validator(mode="after")
    def _has_an_effect(self) -> Owner:
        if self.key_pattern is None and not self.users and not self.roles:
            raise ValueError("needs `key_pattern`, `users`, or `roles`")
        return self


class LatencyTarget(Section):
    """Target of the end-to-end latency of Kafka Streams applications with keys that match a pattern."""

    key_pattern: SqlPattern = Field(
        description="Regular expression on the key of an application, e.g. `^application:orders-prod/billing-`; the"
        " view `resource` lists all keys."
    )
    seconds: float = Field(
        gt=0,
        le=366 * 86_400,
        description="Time from the timestamp of a record to the end of its processing by the application.",
    )


def _is_kind(kind: str) -> str:
    if kind not in KINDS:
        raise ValueError(f"there is no kind of resource '{kind}'; choose from {', '.join(KINDS)}")
    return kind


class ExternalLink(Section):
    """A link from the pages of resources to another system, e.g. the AWS console, a Kafka UI, Grafana, or logs."""

    name: Name = Field(description="Text of the link, e.g. `AWS console`.")
    kinds: list[Annotated[str, AfterValidator(_is_kind)]] = Field(
        min_length=1, description="Kinds of resources with this link, e.g. `[volume]`; the view `resource` lists all."
    )
    url: WebAddress = Field(
        description="URL with the key columns of the kind in braces, e.g."
        " `https://grafana.internal/d/topic?var-topic={topic}`. Values are percent-encoded; `{{` is a brace."
    )

    @model_validator(mode="after")
    def _names_key_columns(self) -> ExternalLink:
        try:
            parts = [(name, spec, how) for _, name, spec, how in Formatter().parse(self.url) if name is not None]
        except ValueError as error:
            raise ValueError(f"`url` is not a template: {error}") from None
        if any(spec or conversion for _, spec, conversion in parts):
            raise ValueError("`url` has a format in braces; only names of key columns are allowed there")
        fields = [field for field, _, _ in parts]
        for kind in self.kinds:
            if unknown := sorted({*fields} - {*KINDS[kind]}):
                known = ", ".join(f"{{{column}}}" for column in KINDS[kind])
                raise ValueError(f"`url` has {{{unknown[0]}}}; a {kind} has {known}")
        return self


class Jobs(Section):
    """Samza jobs."""

    changelog_patterns: list[JobPattern] = Field(
        default_factory=list,
        description="Regular expressions on the full name of a job's changelog, with the named group `job`, the name of"
        " the job (`<job>-<id>` unless its id is 1), and optionally `store`; e.g."
        " `(?P<job>.+)-(?P<store>totals|seen)-changelog`. Only compacted topics are changelogs.",
    )


class Config(Section):
    """The top level of the file."""

    warehouse: Warehouse = Field(default_factory=lambda: Warehouse(), description="The PostgreSQL database.")
    aws: list[AwsAccount] = Field(default_factory=list, description="AWS accounts to watch.")
    kafka: list[KafkaCluster] = Field(default_factory=list, description="Kafka clusters to watch.")
    msk: list[MskClusters] = Field(
        default_factory=list, description="Amazon MSK clusters to discover and watch (docs/connect/msk.md)."
    )
    kubernetes: list[KubernetesCluster] = Field(
        default_factory=list, description="Kubernetes clusters with pods to watch (docs/connect/kubernetes.md)."
    )
    jmx: list[JmxEndpoint] = Field(default_factory=list, description="JVMs to read.")
    jmx_files: list[JmxFiles] = Field(default_factory=list, description="Target files with more JVMs to read.")
    jmx_ec2: list[JmxEc2] = Field(default_factory=list, description="Tags of EC2 instances with more JVMs to read.")
    gathering: Gathering = Field(default_factory=lambda: Gathering(), description="How sources are read.")
    detectors: dict[str, DetectorSettings] = Field(default_factory=dict, description="Overrides by detector id.")
    causes: CausesSettings = Field(default_factory=lambda: CausesSettings(), description="Ranking of causes.")
    owners: list[Owner] = Field(
        default_factory=list,
        description="Owners of resources without a tag `owner`: the first match applies; without one, a resource has"
        " the owner of its parent.",
    )
    latency_targets: list[LatencyTarget] = Field(
        default_factory=list,
        description="Targets of the detector latency_over_target: the first match applies; an application without one"
        " is not evaluated.",
    )
    external_links: list[ExternalLink] = Field(
        default_factory=list, description="Links from the pages of resources to other systems."
    )
    jobs: Jobs = Field(default_factory=lambda: Jobs(), description="Samza jobs.")
    tickets: Tickets = Field(default_factory=lambda: Tickets(), description="Tickets and trackers.")
    reports: Reports = Field(default_factory=lambda: Reports(), description="Scheduled reports.")
    prometheus: Prometheus = Field(
        default_factory=lambda: Prometheus(), description="The page for a Prometheus server."
    )
    ebs_prices: Path = Field(
        Path("sql/prices/ebs.csv"),
        description="CSV file of EBS prices by region, relative to the project; read again in every run.",
    )
    ui_url: WebAddress = Field("http://127.0.0.1:8080", description="Address of the Airflow UI, for links in tickets.")

    def bootstrap_servers(self, cluster: str | None) -> str:
        """Bootstrap servers of a Kafka cluster, for commands to paste; `<host:port>` if it is not configured."""
        return next((one.bootstrap_servers for one in self.kafka if one.name == cluster), "<host:port>")

    @model_validator(mode="after")
    def _has_no_duplicates(self) -> Config:
        _once("aws account", (account.account for account in self.aws))
        _once("aws region", (f"{account.account}/{region}" for account in self.aws for region in account.regions))
        _once("kafka cluster", (cluster.name for cluster in self.kafka))
        _once("kubernetes cluster", (cluster.name for cluster in self.kubernetes))
        return self

    @model_validator(mode="after")
    def _each_jvm_is_one_endpoint(self) -> Config:
        """A JVM has one cluster and one role. Its URL may be a second endpoint of role node, for the host's metrics."""
        first: dict[Hashable, JmxEndpoint] = {}
        for endpoint in self.jmx:
            jvm = endpoint.role == "node", address_of(endpoint.url).rstrip("/"), endpoint.match
            if (before := first.setdefault(jvm, endpoint)) is not endpoint:
                raise ValueError(f"duplicate jmx endpoint: {before}, {endpoint}")
        return self

    @model_validator(mode="after")
    def _searched_accounts_are_watched(self) -> Config:
        if unknown := {found.account for found in self.jmx_ec2} - {account.account for account in self.aws}:
            raise ValueError(f"jmx_ec2 names account {min(unknown)}, which is not under `aws`")
        return self

    @model_validator(mode="after")
    def _msk_has_regions(self) -> Config:
        watched = {account.account for account in self.aws}
        for number, entry in enumerate(self.msk):
            if not entry.regions and entry.account not in watched:
                raise ValueError(f"msk.{number} needs `regions`, because account {entry.account} isn't under `aws`")
        return self

    def account_named(self, number: str) -> AwsAccount | None:
        """An account under `aws`, else as the first entry under `msk` names it."""
        listed = next((one for one in self.aws if one.account == number), None)
        entries = [one for one in self.msk if one.account == number]
        with_role = next((one for one in entries if one.role_arn), None)
        if listed and (listed.role_arn or not with_role):
            return listed
        if not entries:
            return listed
        first = with_role or entries[0]
        regions = listed.regions if listed else [region for entry in entries for region in entry.regions]
        return AwsAccount(account=number, regions=regions, role_arn=first.role_arn, external_id=first.external_id)

    def msk_regions(self, entry: MskClusters) -> list[str]:
        """Regions that an entry under `msk` searches."""
        return entry.regions or next((one.regions for one in self.aws if one.account == entry.account), [])

    @model_validator(mode="after")
    def _endpoints_name_a_cluster(self) -> Config:
        if self.msk or self.kubernetes:  # discovered clusters have names too
            return self
        known = {cluster.name for cluster in self.kafka}
        for endpoint in self.jmx:
            if endpoint.cluster not in known:
                raise ValueError(f"jmx endpoint {endpoint} names a cluster that is not under `kafka`")
        return self

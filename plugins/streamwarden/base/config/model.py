"""The model of `streamwarden.yaml`: keys, types, and validation. docs/config.md is generated from it."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from streamwarden.base.addresses import address_of
from streamwarden.base.config.aws import AwsAccount
from streamwarden.base.config.confluent import ConfluentCluster
from streamwarden.base.config.detectors import CausesSettings, DetectorSettings, LatencyTarget, Owner
from streamwarden.base.config.fields import JobPattern, Section, WebAddress
from streamwarden.base.config.interfaces import ExternalLink, Prometheus, Reports
from streamwarden.base.config.jmx import JmxEc2, JmxEndpoint, JmxFiles
from streamwarden.base.config.kafka import KafkaCluster, MskClusters
from streamwarden.base.config.kubernetes import KubernetesCluster
from streamwarden.base.config.tickets import Tickets
from streamwarden.base.config.units import Days, Seconds


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


PostgresAddress = Annotated[str, AfterValidator(_is_postgres)]


class Warehouse(Section):
    """The PostgreSQL database, and the retention of its tables."""

    url: PostgresAddress | None = Field(
        None,
        description="PostgreSQL URL, `postgresql://user:password@host:5432/database`; without a password and with "
        "`?aws_iam=true`: IAM authentication of RDS; with `?pooler=transaction`: PgBouncer in transaction mode."
        " Empty: the embedded server.",
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
    confluent: list[ConfluentCluster] = Field(
        default_factory=list, description="Clusters of Confluent Cloud (docs/connect/confluent-cloud.md)."
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
        _once("confluent cluster", (one.cluster for one in self.confluent))
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
                raise ValueError(f"msk.{number} needs `regions`, because account {entry.account} is not under `aws`")
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

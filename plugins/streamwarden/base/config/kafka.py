"""Settings of Kafka clusters with their schema registries and Kafka Connect, by address or by Amazon MSK."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from streamwarden.base.config.aws import AwsLogin
from streamwarden.base.config.fields import ClusterName, Name, Section, WebAddress
from streamwarden.base.config.units import AccountId, Region, Seconds


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

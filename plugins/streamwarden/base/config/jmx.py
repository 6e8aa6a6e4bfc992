"""Settings of JVMs: how their metrics are read, one by one, by target files, or by tags of EC2 instances."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from streamwarden.base.addresses import address_of
from streamwarden.base.config.fields import Name, Section, begins_with
from streamwarden.base.config.units import Seconds

JvmAddress = Annotated[str, AfterValidator(begins_with("http", "https", "rmi"))]


class JmxEndpoint(Section):
    """A JVM to read metrics from, a broker or an application; or a host that JVMs run on."""

    role: Literal["broker", "app", "node"] = Field(
        description="What it is: a broker's JVM, an application's, or a host (node exporter's page)."
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
            raise ValueError("a host is read by node exporter: `protocol: prometheus` (or prometheus_api)")
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

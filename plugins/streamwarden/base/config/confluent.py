"""Settings of Confluent Cloud's Metrics API."""

from __future__ import annotations

from pydantic import Field

from streamwarden.base.config.fields import ClusterName, Name, Section, WebAddress
from streamwarden.base.config.units import Seconds


class ConfluentCluster(Section):
    """A Kafka cluster of Confluent Cloud, whose bytes by topic come from the Metrics API."""

    cluster: ClusterName = Field(description="Name of the cluster under `kafka`.")
    id: str = Field(pattern=r"^lkc-[a-z0-9]+$", description="Its id in Confluent Cloud, e.g. `lkc-abc12`.")
    key: Name = Field(description="Cloud API key (not a key of the cluster) of an account with the role MetricsViewer.")
    secret: str = Field(repr=False, description="Its secret, as `${NAME}`.")
    url: WebAddress = Field("https://api.telemetry.confluent.cloud", description="Address of the Metrics API.")
    timeout_seconds: Seconds = Field(30, description="Timeout of a request.")

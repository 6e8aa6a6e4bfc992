"""Settings of Kubernetes clusters: how the API is reached, which pods are read, and what their labels mean."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from streamwarden.base.config.fields import ClusterName, Name, Section

BROKER_SELECTORS = (
    "strimzi.io/kind=Kafka,strimzi.io/component-type=kafka",
    "app.kubernetes.io/name=kafka,app.kubernetes.io/component in (broker,controller-eligible,kafka)",
)
"""Pods of Strimzi (labels of its operator), and of charts that follow Kubernetes' recommended labels."""
OWNER_LABELS = ("owner", "team", "app.kubernetes.io/part-of")
APP_LABELS = ("app.kubernetes.io/name", "app")
_LABEL = r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"


def _is_selector(text: str) -> str:
    """Rejects what the API server certainly does, so that the config names the key."""
    rest = re.sub(r"\([^()]*\)", "()", text)
    requirement = rf"!?\s*{_LABEL}(\s*(=|==|!=)\s*[-\w.]*|\s+(in|notin)\s+\(\))?"
    if not all(re.fullmatch(rf"\s*{requirement}\s*", part) for part in rest.split(",")):
        raise ValueError(f"not a label selector: '{text}'; write e.g. app.kubernetes.io/name=kafka,team in (a,b)")
    return text


Selector = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_is_selector)]
LabelKey = Annotated[str, Field(max_length=317, pattern=f"^{_LABEL}$")]
Namespace = Annotated[str, Field(max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]


class PodSelectors(Section):
    """Label selectors of the pods to read, by role; a pod of several selectors is read once, as broker first."""

    brokers: list[Selector] = Field(
        default_factory=lambda: [*BROKER_SELECTORS],
        description="Brokers: those of Strimzi and of charts with the recommended labels, unless set.",
    )
    apps: list[Selector] = Field(
        default_factory=list, description="Applications, e.g. `[app.kubernetes.io/part-of=billing]`."
    )
    nodes: list[Selector] = Field(
        default_factory=list,
        description="Node exporters, e.g. `[app.kubernetes.io/name=prometheus-node-exporter]`; read on nodes of other"
        " selected pods.",
    )


class PodMetrics(Section):
    """Where the selected pods expose metrics, if neither annotations, monitors, nor names of ports say so."""

    port: int | Name = Field(description="Port, or name of a container port.")
    path: str | None = Field(
        None, pattern="^/[^?#]*$", description="Path of the URL; empty: /metrics, or the default of the protocol."
    )
    scheme: Literal["http", "https"] = Field("http", description="Scheme of the URL.")
    protocol: Literal["prometheus", "jolokia", "dropwizard"] = Field("prometheus", description="As under `jmx`.")

    @model_validator(mode="after")
    def _port_exists(self) -> PodMetrics:
        if isinstance(self.port, int) and not 1 <= self.port <= 65535:
            raise ValueError("`port` must be between 1 and 65535, or the name of a container port")
        return self


class KubernetesKafka(Section):
    """Which Kafka cluster the pods belong to, and how clients reach it."""

    cluster: ClusterName | None = Field(
        None,
        description="Kafka cluster of the pods: a name under `kafka`, or of a Strimzi cluster. Empty: by their label"
        " strimzi.io/cluster, or the only cluster that is found.",
    )
    connect: bool = Field(
        True, description="Read topics, offsets, and groups of Strimzi clusters that are not under `kafka`."
    )
    listener: Name | None = Field(
        None, description="Listener of the Strimzi cluster that clients use; empty: the first internal one."
    )
    client: dict[str, str] = Field(
        default_factory=dict,
        repr=False,
        description="Further librdkafka properties, e.g. `{sasl.username: streamwarden, sasl.password: ${PASSWORD}}`.",
    )


class KubernetesCluster(Section):
    """A Kubernetes cluster with pods to read: brokers, applications, their limits, restarts, and volumes."""

    name: ClusterName = Field(description="Name of the Kubernetes cluster in rows, pages, and tickets.")
    context: Name | None = Field(None, description="Context of the kubeconfig; empty: its current context.")
    kubeconfig: Path | None = Field(
        None, description="Kubeconfig file; empty: those of $KUBECONFIG, or ~/.kube/config."
    )
    in_cluster: bool = Field(
        False, description="Use the service account of the pod that Streamwarden runs in instead of a kubeconfig."
    )
    namespaces: list[Namespace] = Field(
        default_factory=list, description="Namespaces to search; empty: all, which needs a ClusterRole."
    )
    selectors: PodSelectors = Field(default_factory=lambda: PodSelectors(), description="Pods to read.")
    metrics: PodMetrics | None = Field(
        None, description="Where pods that do not declare a metric endpoint expose their metrics."
    )
    monitors: bool = Field(
        True, description="Search PodMonitors and ServiceMonitors of the Prometheus operator for metric endpoints."
    )
    kafka: KubernetesKafka = Field(default_factory=lambda: KubernetesKafka(), description="The Kafka cluster.")
    owner_labels: list[LabelKey] = Field(
        default_factory=lambda: [*OWNER_LABELS],
        description="Labels of pods and Strimzi resources with the owner; the first that is set counts.",
    )
    app_labels: list[LabelKey] = Field(
        default_factory=lambda: [*APP_LABELS],
        description="Labels of pods with the application's name; without one, the Deployment or StatefulSet gives it.",
    )

    @model_validator(mode="after")
    def _has_one_access(self) -> KubernetesCluster:
        if self.in_cluster and (self.context or self.kubeconfig):
            raise ValueError("`in_cluster` uses the pod's service account; `context` and `kubeconfig` have no effect")
        return self

"""The JVMs (and hosts) to read: those in the config, those in target files, and those on tagged EC2 instances.

A file has the format of Prometheus' file_sd: `[{"targets": ["host:port"], "labels": {"role": "broker", "cluster":
"c"}}]`, JSON or YAML. Others write files and tags while we run: an error in them is a gap for the targets concerned,
never an error for the rest.
"""

from __future__ import annotations

import glob
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import yaml
from pydantic import ValidationError
from streamwarden.base.config import Config, JmxEc2, JmxEndpoint, JmxFiles
from streamwarden.base.config.strict_yaml import read_yaml
from streamwarden.base.paths import PROJECT_ROOT

if TYPE_CHECKING:
    from spark_apps.sources.kube.discover import Found as FoundPods
    from spark_apps.sources.kube.discover import FoundPod
    from spark_apps.sources.msk_discovery import Found

LABELS = frozenset({"role", "cluster", "app", "protocol", "broker_id", "instance_id", "memory_limit_bytes"})
"""Labels that are keys of a JVM's entry. Others are for Prometheus. Credentials are never read from a file."""
SAME_INSTANCES_SECONDS = 600
"""How long a response of EC2 is cached, so that all steps of a run see the same instances."""
_PAGES = {"jolokia": "/jolokia"}


@dataclass(frozen=True)
class Gap:
    """Targets that could not be discovered."""

    resource: str
    reason: str
    """As in the sources: `<status>: <message>`."""
    role: str | None
    """Role of the JVMs, if known."""


@dataclass(frozen=True)
class Jvms:
    """All endpoints, and gaps of discovery."""

    by_section: dict[str, list[JmxEndpoint]]
    """By config section: `jmx`, `jmx_files.0`, `jmx_ec2.0`, …, `kubernetes`, `msk`."""
    gaps: list[Gap]
    of_pods: dict[str, JmxEndpoint] = field(default_factory=dict)
    """The endpoint that reads a pod, by the pod's uid."""

    @property
    def endpoints(self) -> list[JmxEndpoint]:
        """Endpoints of all sections."""
        return [endpoint for endpoints in self.by_section.values() for endpoint in endpoints]


def jvms_of(config: Config) -> Jvms:
    """All endpoints, by files and tags as of now."""
    clusters = {cluster.name for cluster in config.kafka} | {cluster.cluster for cluster in msk_of(config).clusters}
    pods = pods_of(config)
    clusters |= {endpoint.cluster for _, endpoint in pods.endpoints} if pods else set()
    found: dict[str, list[JmxEndpoint | Gap]] = {"jmx": [*config.jmx]}
    found |= {f"jmx_files.{n}": list(_in_files(files, clusters)) for n, files in enumerate(config.jmx_files)}
    found |= {f"jmx_ec2.{n}": list(_on_ec2(ec2, config, clusters)) for n, ec2 in enumerate(config.jmx_ec2)}
    by_section = {section: [one for one in of if isinstance(one, JmxEndpoint)] for section, of in found.items()}
    gaps = [one for of in found.values() for one in of if isinstance(one, Gap)]
    if pods:
        gaps += [Gap(resource, reason, None) for resource, reason in pods.gaps_of_pods]
    if config.msk:
        gaps += [Gap(resource, reason, "broker") for resource, reason in msk_of(config).gaps]
    by_section, of_pods = _with_pods(by_section, pods) if pods else (by_section, {})
    return Jvms(_with_msk(by_section, config) if config.msk else by_section, gaps, of_pods)


def msk_of(config: Config) -> Found:
    """Clusters of Amazon MSK, where the config names some."""
    if not config.msk:
        from spark_apps.sources.msk_discovery import Found

        return Found()
    from spark_apps.sources.msk_discovery import discover  # boto3: only where it is asked for

    return discover(config)


def pods_of(config: Config) -> FoundPods | None:
    """Pods of the Kubernetes clusters, where the config names some."""
    if not config.kubernetes:
        return None
    from spark_apps.sources.kube.discover import discover  # kubernetes is slow to import: only where it is asked for

    return discover(config)


def _with_pods(
    by_section: dict[str, list[JmxEndpoint]], pods: FoundPods
) -> tuple[dict[str, list[JmxEndpoint]], dict[str, JmxEndpoint]]:
    """Pods' endpoints too, but for those that others read, which get the pod's instance, limit, and broker id."""
    from spark_apps.sources.kube.discover import with_endpoint

    found = pods.endpoints
    of_pods: dict[str, JmxEndpoint] = {}

    def known(endpoint: JmxEndpoint) -> JmxEndpoint:
        for pod, own in found:
            if pod.pod.uid not in of_pods and _is_of_pod(endpoint, pod, own):
                of_pods[pod.pod.uid] = with_endpoint(pod, endpoint)
                return of_pods[pod.pod.uid]
        return endpoint

    sections = {section: [known(endpoint) for endpoint in endpoints] for section, endpoints in by_section.items()}
    sections["kubernetes"] = [own for pod, own in found if pod.pod.uid not in of_pods]
    return sections, {pod.pod.uid: own for pod, own in found} | of_pods


def _is_of_pod(endpoint: JmxEndpoint, pod: FoundPod, own: JmxEndpoint) -> bool:
    """Whether an endpoint of the config reads this pod: by address, by the pod's DNS name, or as the same broker."""
    if endpoint.role != own.role or endpoint.protocol == "prometheus_api":
        return False
    theirs, ours = urlsplit(endpoint.url), urlsplit(own.url)
    if theirs.port == ours.port and theirs.hostname == ours.hostname:
        return True
    if own.broker_id is not None and (endpoint.cluster, endpoint.broker_id) == (own.cluster, own.broker_id):
        return True
    if theirs.port == ours.port and endpoint.instance_id and endpoint.instance_id == own.instance_id:
        return True
    labels = (theirs.hostname or "").split(".")
    return labels[0] == pod.pod.name and pod.pod.namespace in labels[1:]


def _with_msk(by_section: dict[str, list[JmxEndpoint]], config: Config) -> dict[str, list[JmxEndpoint]]:
    """Open monitoring's endpoints too, but for brokers and hosts that others read; those get MSK's instance id."""
    from spark_apps.sources.msk_discovery import broker_instance, open_monitoring_endpoints

    instances: dict[Any, str] = {
        key: broker_instance(cluster.msk_name, broker.broker_id)
        for cluster in msk_of(config).clusters
        for broker in cluster.brokers
        for key in ((cluster.cluster, broker.broker_id), (cluster.cluster, broker.host), broker.private_ip)
        if key
    }

    def placed(endpoint: JmxEndpoint) -> JmxEndpoint:
        host = urlsplit(endpoint.url).hostname or ""
        known = (instances.get((endpoint.cluster, endpoint.broker_id)) if endpoint.role == "broker" else None) or (
            instances.get((endpoint.cluster, host)) or instances.get(host)
        )
        if known is None or endpoint.instance_id or endpoint.role == "app":
            return endpoint
        return endpoint.model_copy(update={"instance_id": known})

    sections = {section: [placed(endpoint) for endpoint in endpoints] for section, endpoints in by_section.items()}
    read = {(e.role, e.instance_id) for endpoints in sections.values() for e in endpoints if e.instance_id}
    sections["msk"] = [e for e in open_monitoring_endpoints(config) if (e.role, e.instance_id) not in read]
    return sections


def _in_files(files: JmxFiles, clusters: set[str]) -> Iterator[JmxEndpoint | Gap]:
    pattern = str(PROJECT_ROOT / files.path)
    role = _role(files.defaults)
    paths = sorted(glob.glob(pattern))  # noqa: PTH207 a pattern may be absolute
    if not paths:
        yield Gap(f"targets of {files.path}", "missing: no such file", role)
    for path in paths:
        try:
            groups = read_yaml(Path(path).read_text())  # JSON is YAML
        except (OSError, UnicodeDecodeError) as error:
            yield Gap(f"targets of {path}", f"failed: unreadable: {error}", role)
            continue
        except yaml.YAMLError:
            yield Gap(f"targets of {path}", "failed: neither JSON nor YAML", role)
            continue
        if not isinstance(groups, list) or not all(isinstance(group, dict) for group in groups):
            yield Gap(f"targets of {path}", 'failed: not a list of {"targets": […], "labels": {…}}', role)
            continue
        for group in groups:
            yield from _of_group(path, group, files, clusters)


def _of_group(path: str, group: dict[str, Any], files: JmxFiles, clusters: set[str]) -> Iterator[JmxEndpoint | Gap]:
    targets, labels = group.get("targets"), group.get("labels") or {}
    if not isinstance(targets, list) or not isinstance(labels, dict):
        yield Gap(f"targets of {path}", "failed: `targets` of a group is not a list, or `labels` not a mapping", None)
        return
    keys = files.defaults | {key: labels[key] for key in labels.keys() & LABELS}
    scheme, page = labels.get("__scheme__") or "http", labels.get("__metrics_path__")
    for target in targets:
        resource = f"target {_without_credentials(str(target))} of {path}"
        if isinstance(target, str):
            yield _endpoint(resource, keys, clusters, scheme, target, page)
        else:
            yield Gap(resource, "failed: the target is not a text such as host:port", _role(keys))


def _without_credentials(target: str) -> str:
    """The target without the user and the query that `_endpoint` refuses: resources are stored and shown."""
    address, _, query = target.partition("?")
    return "…" if "@" in query else address.rpartition("@")[2]  # a password may have a question mark


def _on_ec2(ec2: JmxEc2, config: Config, clusters: set[str]) -> Iterator[JmxEndpoint | Gap]:
    """Endpoints on tagged instances; all regions of the account are queried concurrently."""
    regions = list(dict.fromkeys(r for aws in config.aws if aws.account == ec2.account for r in aws.regions))
    tags, period = tuple(ec2.tags.items()), int(time.time() / SAME_INSTANCES_SECONDS)
    with ThreadPoolExecutor(len(regions)) as pool:
        answers = list(pool.map(lambda region: _instances(ec2.account, region, tags, period), regions))
    for region, answer in zip(regions, answers, strict=True):
        if isinstance(answer, str):
            yield Gap(f"instances with JVMs in {ec2.account}/{region}", answer, _role(ec2.defaults))
        else:
            yield from (_on_instance(instance, ec2, clusters) for instance in answer)
    if not any(answers):
        reason = f"missing: no running instance is tagged {', '.join(f'{key}={value}' for key, value in tags)}"
        yield Gap(f"instances with JVMs in {ec2.account}", reason, _role(ec2.defaults))


def _on_instance(instance: dict[str, Any], ec2: JmxEc2, clusters: set[str]) -> JmxEndpoint | Gap:
    instance_id, address = instance.get("InstanceId"), instance.get("PrivateIpAddress")
    resource = f"instance {instance_id or address}"
    tags = {tag["Key"]: tag.get("Value", "") for tag in instance.get("Tags", ()) if "Key" in tag}
    keys: dict[str, Any] = {**ec2.defaults, "instance_id": instance_id}
    keys |= {key: tags[tag] for key, tag in ec2.from_tags.items() if tag in tags}
    if not address:
        return Gap(resource, "missing: the instance has no private address", _role(keys))
    return _endpoint(resource, keys, clusters, ec2.scheme, f"{address}:{ec2.port}", ec2.path)


@lru_cache(maxsize=64)
def _instances(
    account: str, region: str, tags: tuple[tuple[str, str], ...], _period: int
) -> list[dict[str, Any]] | str:
    """Running instances, or the gap."""
    # boto3 is slow to import.
    from spark_apps.sources.aws_client import Connection, Failure, Place, listed

    connection = Connection(Place(account, region))
    filters = [{"Name": "instance-state-name", "Values": ["running"]}]
    filters += [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags]
    try:
        paginator = connection.client("ec2").get_paginator("describe_instances")
        pages = paginator.paginate(Filters=filters, PaginationConfig={"PageSize": 500})
        lots = (lot for page in pages for lot in listed(page, "Reservations"))
        return [instance for lot in lots for instance in lot.get("Instances", ())]
    except Failure as error:
        return connection.gap(error)


def _endpoint(
    resource: str, keys: Mapping[str, Any], clusters: set[str], scheme: str, target: str, page: str | None
) -> JmxEndpoint | Gap:
    protocol = str(keys.get("protocol", "prometheus"))
    page = page or _PAGES.get(protocol, "/metrics")
    url = target if protocol == "jmx_rmi" else f"{scheme}://{target}{page}"
    if "@" in url or "?" in url:
        reason = "failed: the address has a user or a query; set `user` and `password` in the defaults only"
        return Gap(resource, reason, _role(keys))
    try:
        endpoint = JmxEndpoint.model_validate({**keys, "protocol": protocol, "url": url})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        reason = f"failed: the labels and the defaults do not define a JVM: {key} {first['msg']}"
        return Gap(resource, reason, _role(keys))
    if endpoint.cluster not in clusters:
        return Gap(resource, f"failed: the cluster '{endpoint.cluster}' is not under `kafka`", endpoint.role)
    return endpoint


def _role(keys: Mapping[str, Any]) -> str | None:
    role = keys.get("role")
    return role if isinstance(role, str) else None

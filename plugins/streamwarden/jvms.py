"""The JVMs to read: those of the config, and those that target files name, as Prometheus' file_sd has them.

A file holds `[{"targets": ["host:port"], "labels": {"role": "broker", "cluster": "orders-prod"}}]`, JSON or YAML. It
is written by other programs while we run: what is wrong in it is a gap for its targets, never an error for the rest.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from streamwarden import PROJECT_ROOT
from streamwarden.config import Config, JmxEndpoint, JmxFiles

LABELS = frozenset({"role", "cluster", "app", "protocol", "broker_id", "instance_id", "memory_limit_bytes"})
"""Labels that are keys of a JVM's entry. Others are for Prometheus. Credentials are never taken from a file."""
_PAGES = {"jolokia": "/jolokia"}


@dataclass(frozen=True)
class Gap:
    """Targets that couldn't be had."""

    resource: str
    reason: str
    """As the sources say it: `<status>: <reason>`."""
    role: str | None
    """Of the JVMs, where it is known."""


@dataclass(frozen=True)
class Jvms:
    """All endpoints, and what couldn't be read of the files."""

    endpoints: list[JmxEndpoint]
    gaps: list[Gap]


def jvms_of(config: Config) -> Jvms:
    """Endpoints of the config and of its target files, as the files are now."""
    known = {cluster.name for cluster in config.kafka}
    found = [one for files in config.jmx_files for one in _read(files, known)]
    return Jvms(
        [*config.jmx, *(one for one in found if isinstance(one, JmxEndpoint))],
        [one for one in found if isinstance(one, Gap)],
    )


def _read(files: JmxFiles, clusters: set[str]) -> Iterator[JmxEndpoint | Gap]:
    pattern = str(PROJECT_ROOT / files.path)
    told = files.defaults.get("role")
    role = told if isinstance(told, str) else None
    paths = sorted(glob.glob(pattern))  # noqa: PTH207 a pattern may be absolute
    if not paths:
        yield Gap(f"targets of {files.path}", "missing: there is no such file", role)
    for path in paths:
        try:
            groups = yaml.safe_load(Path(path).read_text())  # JSON is YAML
        except (OSError, UnicodeDecodeError) as error:
            yield Gap(f"targets of {path}", f"refused: it can't be read: {error}", role)
            continue
        except yaml.YAMLError:
            yield Gap(f"targets of {path}", "refused: it is neither JSON nor YAML", role)
            continue
        if not isinstance(groups, list) or not all(isinstance(group, dict) for group in groups):
            yield Gap(f"targets of {path}", 'refused: it isn\'t a list of {"targets": […], "labels": {…}}', role)
            continue
        for group in groups:
            yield from _endpoints(path, group, files, clusters)


def _endpoints(path: str, group: dict[str, Any], files: JmxFiles, clusters: set[str]) -> Iterator[JmxEndpoint | Gap]:
    targets, labels = group.get("targets"), group.get("labels") or {}
    if not isinstance(targets, list) or not isinstance(labels, dict):
        yield Gap(f"targets of {path}", "refused: a group's `targets` isn't a list, or its `labels` no mapping", None)
        return
    told = {key: labels[key] for key in labels.keys() & LABELS}
    keys: dict[str, Any] = {"protocol": "prometheus"} | files.defaults | told
    page = labels.get("__metrics_path__") or _PAGES.get(str(keys["protocol"]), "/metrics")
    for target in targets:
        resource = f"target {target} of {path}"
        try:
            endpoint = JmxEndpoint.model_validate(
                {**keys, "url": f"{labels.get('__scheme__') or 'http'}://{target}{page}"}
            )
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])
            reason = f"refused: its labels and the defaults don't make a JVM: {key} {first['msg']}"
            yield Gap(resource, reason, keys.get("role"))
            continue
        if endpoint.cluster in clusters:
            yield endpoint
        else:
            yield Gap(resource, f"refused: its cluster '{endpoint.cluster}' isn't under `kafka`", endpoint.role)

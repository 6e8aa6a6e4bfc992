"""Schema Registries over REST, with Confluent's and Karapace's API: one row per version of a subject.

Option `levels`: `no` leaves out compatibility levels, and with them all calls except one per page of schemas.

Reads: `GET /schemas` page by page, `GET /config` and `GET /config/{subject}` (8 at once). Needs: read permission for
subjects and compatibility. After 429 and 5xx a request is retried twice, with a pause. If a subject gets no
response, its compatibility is null and there is a gap row; a registry that stops responding is one gap, and earlier
rows are kept. Limitations: no deleted schemas, and no subjects that the user may not read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, Protocol

import httpx
import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from streamwarden.base.addresses import address_of
from streamwarden.base.bounded_http import ALL_SCHEMAS
from streamwarden.base.config import KafkaCluster
from streamwarden.base.errors import StreamwardenError

from spark_apps.sources.kafka_client import ClusterPartition, ClusterReader, ClusterSource, cluster_named, unreadable
from spark_apps.sources.rest_api import Json, Refused, RestApi

PAGE = 1000
"""Schemas per request: the default maximum of Confluent's registry."""
AT_ONCE = 8


class AnyRegistry(Protocol):
    """What a registry of any kind provides."""

    def schemas(self) -> Iterator[list[dict[str, Json]]]:
        """Pages of versions, each with subject, version, id, schemaType, schema, and references."""

    def compatibility(self, subject: str | None = None) -> str | None:
        """Compatibility level of a subject, or the common one; None: it has none."""

    def close(self) -> None:
        """Closes the connections."""


class RegistryClient(RestApi):
    """Requests to the registry of one cluster.

    Raises:
        StreamwardenError: the cluster has no registry in the config.
        Refused: its address is not valid.
    """

    limits = ALL_SCHEMAS

    def __init__(self, cluster: KafkaCluster) -> None:
        if (registry := cluster.schema_registry) is None or registry.url is None:
            raise StreamwardenError(f"kafka cluster '{cluster.name}' has no schema_registry with a url.")
        self.settings = registry
        name = f"the schema registry of '{cluster.name}' at {address_of(registry.url)}"
        super().__init__(name, registry.url, registry.user, registry.password, registry.timeout_seconds)

    def is_missing(self, body: Json) -> bool:
        """Whether a 404 with this body comes from the registry's API: what was asked for does not exist."""
        code = body.get("error_code") if isinstance(body, dict) else None
        return str(code).startswith("404") and code != httpx.codes.NOT_FOUND

    def refusal(self, path: str, status: int) -> Refused:
        """The message for a status other than 200."""
        if status in (401, 403):
            return Refused(f"{self.name} rejected user and password for GET {path} ({status})")
        if status == httpx.codes.NOT_FOUND:
            return Refused(f"{self.name} does not support GET {path}: not a Schema Registry, or the wrong address")
        return super().refusal(path, status)


class Registry(RegistryClient):
    """A registry with Confluent's API."""

    accept = "application/vnd.schemaregistry.v1+json, application/json"

    def schemas(self) -> Iterator[list[dict[str, Json]]]:
        """Pages of all versions of all subjects. A registry without paging returns them all at once."""
        seen: set[tuple[str, int]] = set()
        while True:
            page = self.get("/schemas", {"offset": len(seen), "limit": PAGE})
            try:
                new = [one for one in page if _key_of(one) not in seen]
            except (TypeError, KeyError):
                raise Refused(f"{self.name} responds to GET /schemas with something other than schemas") from None
            if not new:
                return
            seen |= set(map(_key_of, new))
            yield new

    def compatibility(self, subject: str | None = None) -> str | None:
        """Compatibility level of a subject, or the global one. None: the subject has none."""
        where = "/config" if subject is None else f"/config/{escaped(subject)}"
        try:
            level = self.get(where)["compatibilityLevel"]
        except LookupError:
            if subject is None:
                raise Refused(f"{self.name} does not support GET /config") from None
            return None
        except TypeError:
            level = None
        if isinstance(level, str):
            return level
        raise Refused(f"{self.name} responds to GET {where} without a compatibility level")


def _key_of(schema: dict[str, Json]) -> tuple[str, int]:
    """Subject and version. Raises KeyError or TypeError for what is no version of a schema."""
    subject, version = schema["subject"], schema["version"]
    if isinstance(subject, str) and isinstance(version, int):
        return subject, version
    raise TypeError


def open_registry(cluster: KafkaCluster) -> AnyRegistry:
    """The registry of a cluster by its kind in the config.

    Raises:
        StreamwardenError: there is none; for AWS, also a request that failed.
        Refused: its address is not valid.
    """
    from spark_apps.sources.schema_registry_apicurio import ApicurioRegistry
    from spark_apps.sources.schema_registry_glue import GlueRegistry

    kind = cluster.schema_registry.kind if cluster.schema_registry else "confluent"
    kinds: dict[str, Callable[[KafkaCluster], AnyRegistry]]
    kinds = {"confluent": Registry, "apicurio": ApicurioRegistry, "glue": GlueRegistry}
    return kinds[kind](cluster)


def escaped(subject: str) -> str:
    """Percent-encoded: subjects may have slashes and any characters."""
    return "".join(c if c.isalnum() and c.isascii() else "".join(f"%{b:02X}" for b in c.encode()) for c in subject)


class SchemaRegistryReader(ClusterReader):
    """Reads the registries of clusters, one task per cluster; see the module."""

    only_present = "a Schema Registry"

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Subjects and schemas of one registry."""
        if not isinstance(partition, ClusterPartition):
            return
        name = partition.cluster
        resource = f"{name} schema registry"
        if gap := self.gap_of_hour:
            yield from self.batches([self.gap_row(name, resource, gap)])
            return
        registry = None
        try:
            registry = open_registry(cluster_named(name))
            yield from self._registered(registry, name, resource)
        except (Refused, StreamwardenError) as error:
            yield from self.batches([self.gap_row(name, resource, f"failed: {str(error).rstrip('.')}.")])
        except Exception as error:  # a response may hold anything: the other registries are read
            yield from self.batches([self.gap_row(name, resource, unreadable(error))])
        finally:
            if registry is not None:
                registry.close()

    def _registered(self, registry: AnyRegistry, cluster: str, resource: str) -> Iterator[pa.RecordBatch]:
        answered = {"cluster": cluster, "resource": resource, "observed_at": datetime.now(UTC)}
        yield from self.batches([answered])  # also for a registry without subjects
        levels: dict[str, tuple[str | None, str | None]] = {}
        gaps: dict[str, str] = {}
        has_levels = self.options.get("levels") != "no"
        try:
            common = registry.compatibility() if has_levels else None
        except Refused as error:
            common, gaps[resource] = None, f"failed: {error}."
        for page in registry.schemas():
            new = sorted({schema["subject"] for schema in page} - levels.keys()) if has_levels else []
            with ThreadPoolExecutor(AT_ONCE) as pool:
                for subject, own in zip(new, pool.map(lambda s: _own_level(registry, s), new), strict=True):
                    if isinstance(own, Refused):
                        levels[subject] = None, None
                        gaps[f"{resource} subject {subject}"] = f"failed: {own}."
                    else:
                        levels[subject] = (own, "subject") if own else (common, "global" if common else None)
            yield from self.batches(
                answered | _row(schema, *levels.get(schema["subject"], (None, None))) for schema in page
            )
        if len(gaps) > AT_ONCE:  # it stopped responding: that is one gap, not one per subject
            gaps = {resource: next(reversed(gaps.values()))}
        yield from self.batches(self.gap_row(cluster, where, gap) for where, gap in gaps.items())


def _own_level(registry: AnyRegistry, subject: str) -> str | Refused | None:
    try:
        return registry.compatibility(subject)
    except Refused as error:
        return error
    except StreamwardenError as error:
        return Refused(str(error))


def _row(schema: dict[str, Json], level: str | None, source: str | None) -> dict[str, Any]:
    references = schema.get("references")
    return {
        "subject": schema["subject"],
        "version": schema["version"],
        "schema_id": schema.get("id"),
        "schema_type": schema.get("schemaType") or "AVRO",  # omitted for Avro
        "definition": schema.get("schema"),
        "schema_references": json.dumps(references) if references else None,
        "compatibility": level,
        "compatibility_source": source,
    }


class SchemaRegistry(ClusterSource):
    """Spark data source `schema_registry`. The first row of a registry that responded has no subject."""

    reader_type = SchemaRegistryReader

    @classmethod
    def name(cls) -> str:
        """Name of the data source."""
        return "schema_registry"

    def schema(self) -> str:
        """Columns of the data source."""
        return (
            "cluster string, subject string, version int, schema_id int, schema_type string, definition string,"
            " schema_references string, compatibility string, compatibility_source string,"
            " observed_at timestamp, resource string, gap string"
        )

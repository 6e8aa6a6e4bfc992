"""AWS Glue Schema Registry, in the shape of a Schema Registry: one row per version of a schema.

Values carry an 18-byte header: version 3, compression (0: none, 5: zlib), and the UUID of the schema version (AWS Glue
Developer Guide, "Schema Registry: wire format"; AWSSchemaRegistryConstants of the serializer). Ids of a row are the
first 31 bits of that UUID: `glue_schema_id`. Two versions with the same are a failure, never a mix-up.

Reads: ListSchemas, ListSchemaVersions, GetSchemaVersion, GetSchema (8 at once). Needs: `glue:ListSchemas`,
`glue:ListSchemaVersions`, `glue:GetSchemaVersion`, `glue:GetSchema` on the registry and its schemas. Limitations: the
serializer writes the index of a Protobuf message in its own way, so Protobuf schemas are stored and not compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

from streamwarden.base.config import KafkaCluster
from streamwarden.base.errors import StreamwardenError

from spark_apps.sources.aws_client import Connection, Failure, MalformedAnswer, Place, listed

AT_ONCE = 8
PAGE = 100
"""Schemas or versions per request: the maximum of the API."""
_LEVELS = {"BACKWARD_ALL": "BACKWARD_TRANSITIVE", "FORWARD_ALL": "FORWARD_TRANSITIVE", "FULL_ALL": "FULL_TRANSITIVE"}
_TYPES = {"PROTOBUF": "PROTOBUF (Glue)"}


def glue_schema_id(version_id: str) -> int:
    """The first 31 bits of the UUID of a schema version.

    >>> glue_schema_id("b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63") == 0x37b4a7f0
    True
    """
    return (UUID(version_id).int >> 96) & 0x7FFFFFFF


class GlueRegistry:
    """The Glue registry of one cluster.

    Raises:
        StreamwardenError: its account is not in the config; a request failed, without keys in the message.
    """

    def __init__(self, cluster: KafkaCluster) -> None:
        registry = cluster.schema_registry
        if registry is None or registry.account is None or registry.region is None:
            raise StreamwardenError(f"kafka cluster '{cluster.name}' has no schema_registry of kind glue.")
        self.name = f"the AWS Glue registry '{registry.registry}' of '{cluster.name}'"
        self._registry = registry.registry
        self._connection = Connection(Place(registry.account, registry.region))
        self._names: dict[int, str] = {}
        self._client = self._call(lambda: self._connection.client("glue"))

    def close(self) -> None:
        """Nothing stays open."""

    def schemas(self) -> Iterator[list[dict[str, Any]]]:
        """Pages of all available versions of all schemas."""
        for page in self._pages("list_schemas", RegistryId={"RegistryName": self._registry}):
            with ThreadPoolExecutor(AT_ONCE) as pool:
                yield [version for versions in pool.map(self._versions, page) for version in versions]

    def compatibility(self, subject: str | None = None) -> str | None:
        """Compatibility level of a schema; a Glue registry has no common one."""
        if subject is None:
            return None
        found = self._call(lambda: self._client.get_schema(SchemaId=self._id(subject)))
        level = found.get("Compatibility")
        return _LEVELS.get(level, level)

    def _versions(self, schema: dict[str, Any]) -> list[dict[str, Any]]:
        name = schema["SchemaName"]
        pages = self._pages("list_schema_versions", SchemaId=self._id(name))
        return [
            self._definition(name, version["SchemaVersionId"])
            for page in pages
            for version in page
            if version.get("Status") == "AVAILABLE"
        ]

    def _definition(self, name: str, version_id: str) -> dict[str, Any]:
        found = self._call(lambda: self._client.get_schema_version(SchemaVersionId=version_id))
        schema_id, label = glue_schema_id(version_id), f"{name} {version_id}"
        if (other := self._names.setdefault(schema_id, label)) != label:
            raise StreamwardenError(f"{self.name}: {label} and {other} begin with the same 31 bits; delete one of them")
        kind = found["DataFormat"]
        return {
            "subject": name,
            "version": int(found["VersionNumber"]),
            "id": schema_id,
            "schemaType": _TYPES.get(kind, kind),
            "schema": found["SchemaDefinition"],
        }

    def _id(self, name: str) -> dict[str, str]:
        return {"RegistryName": self._registry, "SchemaName": name}

    def _pages(self, operation: str, **params: Any) -> Iterator[list[dict[str, Any]]]:
        token: dict[str, str] = {}
        while True:
            call = getattr(self._client, operation)
            answer = self._call(lambda: call(MaxResults=PAGE, **params, **token))  # noqa: B023 called at once
            yield self._call(lambda: listed(answer, "Schemas"))  # noqa: B023 called at once
            if not answer.get("NextToken"):
                return
            token = {"NextToken": answer["NextToken"]}

    def _call(self, call: Any) -> Any:
        try:
            return call()
        except (KeyError, ValueError) as error:
            problem = self._connection.gap(MalformedAnswer(f"it has no {error}"))
        except Failure as error:
            problem = self._connection.gap(error)
        raise StreamwardenError(f"{self.name}: {problem.removeprefix('failed: ').rstrip('.')}")

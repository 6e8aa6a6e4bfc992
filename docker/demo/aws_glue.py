"""The AWS Glue Schema Registry of the strict AWS endpoint.

Shapes, required members, and bounds are those of botocore's model of the service; errors: AWS Glue Web API Reference,
ListSchemas, ListSchemaVersions, GetSchemaVersion, GetSchema (EntityNotFoundException, InvalidInputException).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from demo.aws_wire import AwsError, Caller, next_token, resume

if TYPE_CHECKING:
    from demo.aws_endpoint import AwsEndpoint

MAX_RESULTS = 100


@dataclass
class GlueSchema:
    """A schema and its versions, oldest first: UUID, definition, and status."""

    name: str
    data_format: str
    versions: list[tuple[str, str, str]]
    compatibility: str = "BACKWARD"


@dataclass
class GlueRegistry:
    """A registry of an account and region."""

    account: str
    region: str
    name: str = "default-registry"
    schemas: list[GlueSchema] = field(default_factory=list)

    def arn(self, schema: GlueSchema) -> str:
        return f"arn:aws:glue:{self.region}:{self.account}:schema/{self.name}/{schema.name}"


def _page(caller: Caller, params: dict[str, Any], found: list[dict[str, Any]]) -> dict[str, Any]:
    (start,) = resume(caller, params, "InvalidInputException") or (0,)
    end = start + params.get("MaxResults", 25)
    page: dict[str, Any] = {"Schemas": found[start:end]}
    if end < len(found):
        page["NextToken"] = next_token(caller, params, [end])
    return page


def _registries(endpoint: AwsEndpoint, caller: Caller) -> list[GlueRegistry]:
    return [
        each for each in endpoint.world.glue if (each.account, each.region) == (caller.account, caller.region)
    ]  # fmt: skip


def _registry(endpoint: AwsEndpoint, caller: Caller, name: str) -> GlueRegistry:
    for registry in _registries(endpoint, caller):
        if registry.name == name:
            return registry
    raise AwsError("EntityNotFoundException", f"Registry is not found. RegistryName: {name}")


def _schema(endpoint: AwsEndpoint, caller: Caller, schema_id: dict[str, str]) -> tuple[GlueRegistry, GlueSchema]:
    if "SchemaName" not in schema_id or "RegistryName" not in schema_id:
        raise AwsError("InvalidInputException", "SchemaName and RegistryName are required without SchemaArn.")
    registry = _registry(endpoint, caller, schema_id["RegistryName"])
    for schema in registry.schemas:
        if schema.name == schema_id["SchemaName"]:
            return registry, schema
    raise AwsError("EntityNotFoundException", f"Schema is not found. SchemaName: {schema_id['SchemaName']}")


def list_schemas(endpoint: AwsEndpoint, caller: Caller, params: dict[str, Any]) -> dict[str, Any]:
    """ListSchemas of one registry."""
    registry = _registry(endpoint, caller, params.get("RegistryId", {}).get("RegistryName", "default-registry"))
    rows = [
        {
            "RegistryName": registry.name,
            "SchemaName": one.name,
            "SchemaArn": registry.arn(one),
            "SchemaStatus": "AVAILABLE",
        }
        for one in registry.schemas
    ]
    return _page(caller, params, rows)


def list_schema_versions(endpoint: AwsEndpoint, caller: Caller, params: dict[str, Any]) -> dict[str, Any]:
    """ListSchemaVersions: without definitions."""
    registry, schema = _schema(endpoint, caller, params["SchemaId"])
    rows = [
        {"SchemaArn": registry.arn(schema), "SchemaVersionId": version_id, "VersionNumber": n, "Status": status}
        for n, (version_id, _, status) in enumerate(schema.versions, 1)
    ]
    return _page(caller, params, rows)


def get_schema_version(endpoint: AwsEndpoint, caller: Caller, params: dict[str, Any]) -> dict[str, Any]:
    """GetSchemaVersion by the id of the version."""
    if "SchemaVersionId" not in params:
        raise AwsError("InvalidInputException", "SchemaVersionId or SchemaId with SchemaVersionNumber is required.")
    for registry in _registries(endpoint, caller):
        for schema in registry.schemas:
            for n, (version_id, definition, status) in enumerate(schema.versions, 1):
                if version_id == params["SchemaVersionId"]:
                    return {
                        "SchemaVersionId": version_id, "SchemaDefinition": definition, "VersionNumber": n,
                        "DataFormat": schema.data_format, "SchemaArn": registry.arn(schema), "Status": status,
                    }  # fmt: skip
    raise AwsError("EntityNotFoundException", "Schema version is not found.")


def get_schema(endpoint: AwsEndpoint, caller: Caller, params: dict[str, Any]) -> dict[str, Any]:
    """GetSchema: compatibility and the newest version."""
    registry, schema = _schema(endpoint, caller, params["SchemaId"])
    return {
        "RegistryName": registry.name, "SchemaName": schema.name, "SchemaArn": registry.arn(schema),
        "DataFormat": schema.data_format, "Compatibility": schema.compatibility, "SchemaStatus": "AVAILABLE",
        "LatestSchemaVersion": len(schema.versions), "NextSchemaVersion": len(schema.versions) + 1,
    }  # fmt: skip

"""Apicurio Registry by its own API (v2 and v3), in the shape of a Schema Registry: one row per version of an artifact.

Values carry a zero byte and an id of 4 bytes (v3's default) or 8 bytes (v2's): the content id (v3's default) or the
global id (v2's), `ids` in the config (Apicurio Registry user guide, "Configuring Kafka serializers/deserializers").

Reads: `GET /search/versions` (v3), `GET /search/artifacts` and `GET /groups/{group}/artifacts/{artifact}/versions`
(v2), `GET /ids/contentIds/{id}` and its references, `GET …/rules/COMPATIBILITY` (8 at once). Needs: a user that may
read. Limitations: ids in record headers are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from streamwarden.base.config import KafkaCluster

from spark_apps.sources.rest_api import Json, Refused
from spark_apps.sources.schema_registry import AT_ONCE, RegistryClient, escaped

PAGE = 500
"""Artifacts or versions per request: the maximum of the API."""
_IDS = {"content": "contentId", "global": "globalId"}
_DEFAULT_GROUP = "default"
_MOST_NUMBERED = 100_000
"""A larger version is a date or a time, such as 20261121053000: it fits no integer."""


class ApicurioRegistry(RegistryClient):
    """The Apicurio Registry of one cluster.

    Raises:
        StreamwardenError: the cluster has no registry in the config.
        Refused: the address is not valid.
    """

    def __init__(self, cluster: KafkaCluster) -> None:
        super().__init__(cluster)
        base = str(self.settings.url).rstrip("/")
        self._api = "" if "/apis/registry/" in base else "/apis/registry/v3"
        self._is_v2 = base.endswith("/v2")
        ids = self.settings.ids or ("global" if self._is_v2 else "content")
        self._id = _IDS[ids]
        self._places: dict[str, tuple[str, str]] = {}
        """Group and artifact by subject."""
        self._ordinals: dict[tuple[str, str], int] = {}

    def schemas(self) -> Iterator[list[dict[str, Json]]]:
        """Pages of all versions of all artifacts that are Avro, JSON, or Protobuf schemas."""
        for page in self._versions():
            for version in page:  # in the order of the list: the requests below overtake each other
                self._number(*self._place(version), version.get("version", ""))
            with ThreadPoolExecutor(AT_ONCE) as pool:
                yield [row for row in pool.map(self._row_or_none, page) if row is not None]

    def compatibility(self, subject: str | None = None) -> str | None:
        """The compatibility rule of an artifact, or the global one. None: there is none."""
        where = "/admin" if subject is None else self._path(*self._places[subject])
        try:
            rule = self.get(f"{self._api}{where}/rules/COMPATIBILITY")["config"]
        except LookupError:
            return None
        except TypeError:
            rule = None
        if isinstance(rule, str):
            return rule
        raise Refused(f"{self.name} responds to GET {where}/rules without a rule")

    def is_missing(self, body: Json) -> bool:
        """Every 404 of Apicurio has the name of the exception."""
        return isinstance(body, dict) and str(body.get("name", "")).endswith("NotFoundException")

    def _versions(self) -> Iterator[list[dict[str, Json]]]:
        if not self._is_v2:
            yield from self._pages("/search/versions", "versions")
            return
        for page in self._pages("/search/artifacts", "artifacts"):
            for artifact in page:
                group, name = artifact.get("groupId") or _DEFAULT_GROUP, artifact["id"]
                for versions in self._pages(f"{self._path(group, name)}/versions", "versions"):
                    yield [
                        {"groupId": group, "artifactId": name, "artifactType": one["type"], **one} for one in versions
                    ]

    def _row_or_none(self, version: dict[str, Json]) -> dict[str, Json] | None:
        """The row of a version; None: it is no schema, or was deleted since it was listed."""
        try:
            return self._row(version)
        except KeyError as error:
            raise Refused(f"{self.name} lists a version without {error}") from None
        except LookupError:
            return None

    def _row(self, version: dict[str, Json]) -> dict[str, Json] | None:
        kind = version["artifactType"]
        if kind not in ("AVRO", "JSON", "PROTOBUF") or version.get("state") == "DISABLED":
            return None
        group, name = self._place(version)
        content = f"{self._api}/ids/contentIds/{int(version['contentId'])}"
        references = self.get(f"{content}/references")
        return {
            "subject": self._subject(group, name),
            "version": self._number(group, name, version["version"]),
            "id": int(version[self._id]),
            "schemaType": kind,
            "schema": self.text(content),
            "references": [self._reference(one) for one in references],
        }

    def _reference(self, one: dict[str, Json]) -> dict[str, Json]:
        group, name = self._place(one)
        version = self._number(group, name, one["version"])
        return {"name": one["name"], "subject": self._subject(group, name), "version": version}

    def _number(self, group: str, name: str, version: str) -> int:
        """Versions are texts; one that is no small number is numbered by its first occurrence, from 100,001."""
        if str(version).isdecimal() and int(version) <= _MOST_NUMBERED:
            return int(version)
        first = _MOST_NUMBERED + 1
        return self._ordinals.setdefault((self._subject(group, name), version), first + len(self._ordinals))

    def _pages(self, path: str, key: str) -> Iterator[list[dict[str, Json]]]:
        offset = 0
        while True:
            page = self.get(f"{self._api}{path}", {"limit": PAGE, "offset": offset})
            try:
                found: list[dict[str, Json]] = list(page[key])
            except (KeyError, TypeError):
                raise Refused(f"{self.name} responds to GET {path} without {key}") from None
            if not found:
                return
            yield found
            offset += len(found)

    def _subject(self, group: str, name: str) -> str:
        subject = name if group == _DEFAULT_GROUP else f"{group}/{name}"
        self._places.setdefault(subject, (group, name))
        return subject

    @staticmethod
    def _place(version: dict[str, Json]) -> tuple[str, str]:
        """Group and artifact of a version, or of a reference to one."""
        return version.get("groupId") or _DEFAULT_GROUP, version["artifactId"]

    @staticmethod
    def _path(group: str, name: str) -> str:
        return f"/groups/{escaped(group)}/artifacts/{escaped(name)}"

"""Settings of detectors: parameters, exceptions, owners, and latency targets."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime

from pydantic import Field, model_validator

from streamwarden.base.config.fields import Name, Section, SqlPattern, Wanted, is_meant


class DetectorException(Section):
    """Resources for which a detector has other parameters, or is off."""

    where: dict[str, Wanted] = Field(
        min_length=1,
        description="Selects resources by the columns of their key, `owner`, or `application`. A value that begins with"
        " ^ is a regular expression. The first exception that matches a resource applies.",
    )
    params: dict[str, float | int | str | bool] = Field(default_factory=dict, description="Parameters to replace.")
    off: bool = Field(False, description="Not evaluated; an open ticket is closed.")
    why: str = Field(min_length=1, description="The reason, shown with the exception.")
    until: date | None = Field(
        None, description="Last day (UTC); afterwards it does not apply, and the page shows it as expired."
    )

    @model_validator(mode="after")
    def _changes_something(self) -> DetectorException:
        if self.off == bool(self.params):
            raise ValueError("an exception has either `params` or `off: true`")
        return self

    @property
    def rule(self) -> str:
        """The exception as JSON, its key in the warehouse."""
        return self.model_dump_json(exclude_defaults=True)

    def holds_in(self, hour: datetime) -> bool:
        """Whether the exception has not expired in an hour."""
        return self.until is None or hour.astimezone(UTC).date() <= self.until

    def matches(self, values: Mapping[str, str]) -> bool:
        """Whether the exception applies to a resource with these key columns, owner, and application.

        A resource without one of the columns is not meant, such as a client where the exception names a topic.
        """
        return all(column in values and is_meant(wanted, values[column]) for column, wanted in self.where.items())


class DetectorSettings(Section):
    """Overrides of one detector."""

    enabled: bool = Field(True, description="Whether the detector is evaluated; if not, open tickets stay unchanged.")
    params: dict[str, float | int | str | bool] = Field(default_factory=dict, description="Parameters to replace.")
    exceptions: list[DetectorException] = Field(
        default_factory=list, description="Resources with other parameters, or with the detector off."
    )


class CausesSettings(Section):
    """Parameters of the ranking of causes."""

    params: dict[str, float | int] = Field(
        default_factory=dict, description="Parameters to replace; docs/causes.md lists them."
    )


class Owner(Section):
    """The owner of resources with keys that match a pattern, and the logins that have a link to its findings."""

    key_pattern: SqlPattern | None = Field(
        None,
        description="Regular expression on the key of a resource, e.g. `^(group|topic):orders-prod/billing-`; the view"
        " `resource` lists all keys. Without one, the entry only names logins of an owner that is set by tags.",
    )
    owner: Name = Field(description="Name of the owner, who gets the tickets.")
    users: list[Name] = Field(
        default_factory=list, description="Airflow logins of the owner: the link Mine of the pages filters by it."
    )
    roles: list[Name] = Field(
        default_factory=list, description="Airflow roles or teams of the owner; their logins have the link Mine, too."
    )

    @model_validator(mode="after")
    def _has_an_effect(self) -> Owner:
        if self.key_pattern is None and not self.users and not self.roles:
            raise ValueError("needs `key_pattern`, `users`, or `roles`")
        return self


class LatencyTarget(Section):
    """Target of the end-to-end latency of Kafka Streams applications with keys that match a pattern."""

    key_pattern: SqlPattern = Field(
        description="Regular expression on the key of an application, e.g. `^application:orders-prod/billing-`; the"
        " view `resource` lists all keys."
    )
    seconds: float = Field(
        gt=0,
        le=366 * 86_400,
        description="Time from the timestamp of a record to the end of its processing by the application.",
    )

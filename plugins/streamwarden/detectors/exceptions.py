"""Exceptions of a detector: which resources they match, and how many they matched."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa

from streamwarden.base.config import Config, DetectorException
from streamwarden.detectors.finding import Finding
from streamwarden.detectors.load import Detector
from streamwarden.detectors.resources import Resource


def exceptions_of(detector: Detector, config: Config) -> Sequence[DetectorException]:
    """The config's exceptions of a detector, in order: the first that matches a resource applies."""
    settings = config.detectors.get(detector.id)
    return settings.exceptions if settings else ()


def applies_to(exception: DetectorException, resource: Resource) -> bool:
    """Whether an exception applies to a resource, by its key columns, owner, and application."""
    values = {**resource.columns, "owner": resource.owner or "", "application": resource.application or ""}
    return exception.matches(values)


def note_exceptions(
    connection: sa.Connection, detector: Detector, hour: datetime, config: Config, found: Sequence[Finding]
) -> None:
    """Stores how many resources each exception matched, to show those that match none."""
    exceptions = exceptions_of(detector, config)
    rules = [exception.rule for exception in exceptions]
    connection.execute(
        sa.text("delete from detect.exception where detector = :detector and rule <> all(:rules)"),
        {"detector": detector.id, "rules": rules},
    )
    for exception in exceptions:
        resources = sum(applies_to(exception, finding.resource) for finding in found)
        values = {"detector": detector.id, "rule": exception.rule, "hour": hour, "resources": resources}
        connection.execute(_EXCEPTION, values | {"matched": hour if resources else None})


_EXCEPTION = sa.text("""
    insert into detect.exception (detector, rule, first_hour, last_hour, matched_hour, resources)
    values (:detector, :rule, :hour, :hour, :matched, :resources)
    on conflict (detector, rule) do update set
      first_hour = least(exception.first_hour, excluded.first_hour),
      last_hour = greatest(exception.last_hour, excluded.last_hour),
      matched_hour = greatest(exception.matched_hour, excluded.matched_hour),
      resources = case
        when excluded.last_hour >= exception.last_hour then excluded.resources else exception.resources
      end""")

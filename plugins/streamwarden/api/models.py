"""Responses and requests of the REST API. Their descriptions are its documentation."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from streamwarden.tickets.responses import MAX_CHARACTERS

MOST = 500
"""Largest page."""
_NEXT = "Pass it as `cursor` to get the next page; null: this is the last page."
T = TypeVar("T")


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not contain the character NUL, which PostgreSQL does not store")
    return text


def _storable(moment: datetime) -> datetime:
    if not 1970 < moment.year < 2261:  # checked first: years 1 and 9999 have no equivalent in every time zone
        raise ValueError("must be between 1971 and 2260")
    return moment.astimezone(UTC)


Text = Annotated[str, StringConstraints(min_length=1, max_length=300), AfterValidator(_without_nul)]
Fingerprint = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Severity = Literal["critical", "warning", "info"]
Status = Literal["firing", "ok", "unknown"]
TicketState = Literal["open", "closed"]


class Model(BaseModel):
    """A part of a response."""

    model_config = ConfigDict(extra="ignore")


class Page(BaseModel, Generic[T]):
    """A page of a list."""

    items: list[T]
    next_cursor: str | None = Field(
        description="Pass it as `cursor` to get the next page; null: this is the last page."
    )


class Problem(BaseModel):
    """An error (RFC 9457, application/problem+json)."""

    type: str = Field("about:blank", description="Always `about:blank`: the status code identifies the problem.")
    title: str = Field(description="The problem in a few words.")
    status: int = Field(description="HTTP status code.")
    detail: str = Field(description="One sentence: the key, the value, and the way out.")


class Resource(Model):
    """A resource that was seen in the newest 24 gathered hours."""

    key: str = Field(description="Its key, the same everywhere, e.g. `broker:orders-prod/3`.")
    kind: str
    name: str
    cluster: str | None = Field(description="Kafka cluster; null for AWS resources.")
    application: str | None
    owner: str | None = Field(description="null: unassigned.")
    seen_hour: datetime = Field(description="Newest hour in which it was seen (UTC).")


class Link(Model):
    """A dependency between two resources."""

    key: str
    basis: str = Field(description="Kind of dependency: attached, runs on, leads, read by, …")


class ResourceDetail(Resource):
    """A resource with its dependencies and open findings."""

    upstream: list[Link] = Field(description="Resources with faults that can affect it, by key, 500 at most.")
    upstream_total: int = Field(description="Number of all of them.")
    downstream: list[Link] = Field(description="Resources that its faults can affect, by key, 500 at most.")
    downstream_total: int = Field(description="Number of all of them.")
    findings: list[Finding] = Field(description="Its open findings, worst first, 500 at most.")


class Ticket(Model):
    """The ticket of a finding."""

    state: TicketState
    key: str | None = Field(description="Issue key in the tracker; null: not filed yet.")
    url: str | None
    muted: Literal["wont_fix", "snoozed"] | None
    acknowledged_by: str | None


class Finding(Model):
    """A finding: the evaluation of one resource by one detector."""

    fingerprint: str = Field(description="Id of the finding; it does not change from hour to hour.")
    detector: str
    title: str | None = Field(description="Title of the detector.")
    status: Status = Field(
        description="Status in the detector's newest hour. unknown: not evaluated; it is never healthy."
    )
    is_current: bool = Field(
        description="False: the resource was not found in that hour, and the other fields are of an older hour."
    )
    severity: Severity | None
    reason: str | None = Field(description="Verdict of the detector, a stable code.")
    message: str
    details: list[str]
    impact: str | None
    actions: list[str] = Field(description="Recommended actions, in order.")
    commands: list[str]
    key_metrics: list[str] = Field(description="Names of the key metrics, in order.")
    metrics: dict[str, Any] = Field(description="Metrics of the detector; the unit is in the name.")
    resource: str | None = Field(description="Key of the resource.")
    resource_name: str
    kind: str | None
    cluster: str | None
    owner: str | None = Field(description="null: unassigned.")
    application: str | None
    since_hour: datetime | None = Field(description="First firing hour without a healthy hour since (UTC).")
    evaluated_hour: datetime = Field(description="Start of the hour that was evaluated (UTC).")
    ticket: Ticket | None


class FindingDetail(Finding):
    """A finding with the affected parts of its resource."""

    affected: list[Any] = Field(description="Affected parts: keys, or objects with `topic` and `partition`.")


class Incident(Model):
    """A ticket with an issue of its own: a root cause with its downstream effects, or the summary of an alert storm."""

    fingerprint: str
    detector: str
    title: str
    severity: Severity = Field(description="Highest severity of its findings.")
    state: TicketState
    resource: str | None
    resource_name: str
    owner: str | None
    opened_hour: datetime
    resolved_hour: datetime | None
    close_reason: str | None
    muted: Literal["wont_fix", "snoozed"] | None
    muted_until: datetime | None
    acknowledged_by: str | None
    findings: int = Field(description="Number of findings.")
    ticket_key: str | None
    ticket_url: str | None


class Member(Model):
    """A finding of an incident."""

    fingerprint: str
    cause: str | None = Field(description="Fingerprint of the finding that caused it; null: the root cause.")
    depth: int = Field(description="Distance from the root cause.")
    detector: str
    title: str
    severity: Severity
    state: TicketState
    resource: str | None
    opened_hour: datetime
    resolved_hour: datetime | None
    evidence: str | None = Field(description="Evidence for the cause, in one sentence.", validation_alias="message")
    strength: float | None = Field(description="Strength of that evidence, 0 to 1.")


class IncidentDetail(Incident):
    """An incident with its findings, the root cause first."""

    members: list[Member]


class Group(Model):
    """A consumer group in the newest gathered hour. null: unknown."""

    cluster: str
    group_id: str
    state: str | None = Field(description="State when it was described, e.g. STABLE.")
    status: str | None = Field(description="Worst status of its partitions: ok, warn, stop, stall, or rewind.")
    members: int | None
    topics: int | None
    partitions: int | None
    lag_records: int | None = Field(description="Sum of the partitions with known lag.")
    lag_seconds_max: float | None = Field(description="Age of the oldest unread record, maximum of the partitions.")
    lag_unknown_partitions: int | None
    records_consumed: int | None = Field(description="Records consumed in the hour.")
    commits: int | None
    rebalances: int | None
    worst_topic: str | None
    worst_partition: int | None
    hour: datetime = Field(description="Start of the hour (UTC).")


class Owner(Model):
    """The member that owns a partition."""

    client_id: str
    host: str | None


class PartitionLag(Model):
    """Lag of a consumer group on one partition at the end of the hour. null: unknown."""

    topic: str
    partition: int
    committed_offset: int | None
    committed_at: datetime | None
    log_end_offset: int | None
    lag_records: int | None
    lag_seconds: float | None = Field(description="Age of the first uncommitted record.")
    status: str | None = Field(description="ok, warn, stop, stall, or rewind, by Burrow's rules.")
    is_assigned: bool | None
    owner_member: Owner | None = Field(description="Member that owns the partition; null: none, or not known.")


class GroupLag(Group):
    """Lag of a consumer group, partition by partition, a page at a time."""

    items: list[PartitionLag]
    next_cursor: str | None = Field(
        description="Pass it as `cursor` to get the next page; null: this is the last page."
    )


class NewResponse(BaseModel):
    """A response of a person to a finding."""

    model_config = ConfigDict(extra="forbid")

    verb: Literal["acknowledge", "snooze", "false_positive", "comment"]
    text: Annotated[str, StringConstraints(max_length=MAX_CHARACTERS), AfterValidator(_without_nul)] = Field(
        "", description="Reason or comment; required for `false_positive` and `comment`."
    )
    until: Annotated[AwareDatetime, AfterValidator(_storable)] | None = Field(
        None, description="End of a snooze, with a time zone, e.g. 2026-11-27T08:00:00Z; only for `snooze`."
    )

    @model_validator(mode="after")
    def _is_complete(self) -> NewResponse:
        if self.verb in ("false_positive", "comment") and not self.text.strip():
            raise ValueError(f"`{self.verb}` needs `text`")
        if (self.verb == "snooze") != (self.until is not None):
            raise ValueError("`snooze` needs `until`; no other verb has it")
        return self


class StoredResponse(Model):
    """A response that was stored. The next run delivers it to the trackers."""

    fingerprint: str
    verb: str
    who: str
    text: str
    until: datetime | None


ResourceDetail.model_rebuild()

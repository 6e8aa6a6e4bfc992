"""Settings of trackers, one class for each kind. The module of the same name in tickets/sinks is its client."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from streamwarden.base.config.fields import (
    MailAddress,
    Name,
    SafeAddress,
    Section,
    Severity,
    WebAddress,
    is_encrypted_or_here,
    is_loopback,
)

_OUR_LABELS = ("alertname", "severity", "owner", "cluster", "resource", "finding")


def _is_no_label_of_ours(name: str) -> str:
    if name in _OUR_LABELS:
        raise ValueError(f"label '{name}' is set by Streamwarden; choose another name")
    return name


Label = Annotated[str, Field(pattern=r"^\S{1,255}$")]
LabelName = Annotated[str, Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]{0,99}$"), AfterValidator(_is_no_label_of_ours)]
TrackerName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]


class Credentials(Section):
    """Credentials of a tracker: user and password, or an Airflow connection."""

    needs: ClassVar[str] = "`password`"

    user: str | None = Field(None, description="User that creates tickets, if the tracker needs one.")
    password: str | None = Field(None, repr=False, description="Its password or token, as `${NAME}`.")
    connection: Name | None = Field(
        None, description="Airflow connection that has login and password instead of `user` and `password`."
    )

    @model_validator(mode="after")
    def _has_one_source_of_credentials(self) -> Any:
        if bool(self.password) == bool(self.connection):
            raise ValueError(f"needs {self.needs} (as ${{NAME}}), or `connection`, and not both")
        return self


class Answers(Credentials):
    """Labels that people set as a response."""

    acknowledged: Name = Field("acknowledged", description="Label: acknowledged, somebody works on it.")
    snoozed: Name = Field("snoozed", description="Label: snoozed for seven days, unless the severity rises.")
    wont_fix: Name = Field("wont-fix", description="Label: won't fix, closed permanently.")

    def label_of(self, answer: Literal["acknowledged", "snoozed"]) -> str:
        """The label of a response."""
        return self.acknowledged if answer == "acknowledged" else self.snoozed


class Console(Section):
    """The task's log, to preview tickets without a tracker."""

    kind: Literal["console"] = Field("console", description="`console`")


class Roundup(Credentials):
    """A Roundup tracker."""

    needs: ClassVar[str] = "`user` and `password`"

    kind: Literal["roundup"] = Field("roundup", description="`roundup`")
    url: SafeAddress = Field(description="Address of the tracker.")


class Github(Answers):
    """Issues of a GitHub repository, also GitHub Enterprise. `password` is the token."""

    kind: Literal["github"] = Field("github", description="`github`")
    url: SafeAddress = Field(
        "https://api.github.com", description="Address of the API; of an Enterprise server https://HOST/api/v3."
    )
    repository: str = Field(pattern=r"^[\w.-]+/[\w.-]+$", description="owner/name of the repository.")
    label: Name = Field("streamwarden", description="Label of all tickets; a new warehouse finds existing ones by it.")
    labels: list[Name] = Field(default_factory=list, description="Further labels.")
    assignees: list[Name] = Field(default_factory=list, description="Assignees of new tickets.")


class Jira(Answers):
    """A Jira project: in Cloud, `user` is the mail address of an account and `password` its API token. In Data Center,
    `password` is a personal access token, or the password of `user`."""

    kind: Literal["jira"] = Field("jira", description="`jira`")
    url: SafeAddress = Field(description="Address of the site, e.g. https://acme.atlassian.net")
    edition: Literal["cloud", "data_center"] = Field("cloud", description="Edition of Jira.")
    project: str = Field(pattern=r"^[A-Z][A-Z0-9_]+$", description="Key of the project.")
    issue_type: Name = Field("Bug", description="Type of the issues.")
    label: Label = Field("streamwarden", description="Label of all tickets.")
    labels: list[Label] = Field(default_factory=list, description="Further labels.")
    fields: dict[str, Any] = Field(
        default_factory=dict,
        description="Further fields of new issues in the API's format: `{components: [{name: Kafka}]}`.",
    )
    priorities: dict[Severity, Name] = Field(
        default_factory=dict, description="Priority by severity: `{critical: Highest, warning: High}`; none: not set."
    )
    fingerprint_field: str | None = Field(
        None,
        pattern=r"^customfield_\d+$",
        description="Text field for the fingerprint, in addition to the end of the description.",
    )
    close_transition: Name | None = Field(
        None, description="Transition that closes; none: the first that leads to a status of the category Done."
    )
    reopen_transition: Name | None = Field(
        None, description="Transition that reopens an issue; none: the first that leads to another category."
    )
    resolution: Name | None = Field(None, description="Resolution of closed issues, if the transition requires one.")
    wont_fix_resolution: Name | None = Field(
        None, description="Resolution that means won't fix, in addition to `Won't Do` and `Won't Fix`."
    )

    def priority_of(self, severity: str) -> str | None:
        """Name of the priority for a severity; None: not set."""
        return next((priority for key, priority in self.priorities.items() if key == severity), None)


class PagerDuty(Credentials):
    """A PagerDuty service with the integration "Events API v2". `password` is the integration key; `user` is the mail
    address of the author of notes."""

    needs: ClassVar[str] = "`password`, the integration key"

    kind: Literal["pagerduty"] = Field("pagerduty", description="`pagerduty`")
    url: SafeAddress = Field(
        "https://events.pagerduty.com", description="Events API; in the EU https://events.eu.pagerduty.com"
    )
    api_url: SafeAddress = Field(
        "https://api.pagerduty.com", description="REST API; in the EU https://api.eu.pagerduty.com"
    )
    api_token: str | None = Field(
        None, repr=False, description="REST API key as `${NAME}`, to write notes and to read people's responses."
    )
    image_url: str | None = Field(
        None,
        pattern="^https://",
        description="URL of a chart that PagerDuty can load; `{fingerprint}` is replaced by that of the finding.",
    )

    @model_validator(mode="after")
    def _notes_have_an_author(self) -> Any:
        if self.api_token and not (self.user or self.connection):
            raise ValueError("`api_token` needs `user`, the mail address of the author of notes")
        return self


class Slack(Credentials):
    """A Slack channel that an app posts to. `password` is the app's bot token, xoxb-…."""

    kind: Literal["slack"] = Field("slack", description="`slack`")
    url: SafeAddress = Field("https://slack.com", description="Address of the API.")
    channel: str = Field(pattern=r"^[CG][A-Z0-9]+$", description="Id of the channel (at the end of its details).")


class Webhook(Credentials):
    """Any service that accepts JSON by POST. `password` is the secret for its signature (HMAC-SHA256)."""

    needs: ClassVar[str] = "`password`, the secret that signs"

    kind: Literal["webhook"] = Field("webhook", description="`webhook`")
    url: SafeAddress = Field(description="URL that receives the POST requests.")
    body: dict[str, Any] | None = Field(
        None,
        description="JSON to send, in which `{action}`, `{key}`, `{id}`, `{fingerprint}`, `{title}`, `{text}`,"
        " `{severity}`, `{owner}`, `{detector}`, `{resource}`, `{url}`, `{hour}` are replaced. None: all of them.",
    )


class Alertmanager(Credentials):
    """A Prometheus Alertmanager. `user` and `password` if it requires them (HTTP basic), or `password` alone as a
    bearer token."""

    kind: Literal["alertmanager"] = Field("alertmanager", description="`alertmanager`")
    url: WebAddress = Field(description="Address with its route prefix, e.g. http://alertmanager:9093")
    labels: dict[LabelName, Name] = Field(
        default_factory=dict, description="Further labels of all alerts, for your routes, e.g. `{team: streaming}`."
    )
    expires_hours: int = Field(
        12,
        ge=2,
        le=168,
        description="Hours after which Alertmanager resolves an alert that is not sent again; each run sends those of"
        " open tickets.",
    )

    @model_validator(mode="after")
    def _has_one_source_of_credentials(self) -> Any:
        """Both may be missing: Alertmanager requires no credentials unless it is configured to."""
        if self.password and self.connection:
            raise ValueError("needs `password` or `connection`, and not both")
        if self.user and not (self.password or self.connection):
            raise ValueError("`user` needs `password` (as ${NAME}); set both, or none")
        if self.password or self.connection:
            is_encrypted_or_here(self.url)
        return self


class Gitlab(Answers):
    """Issues of a GitLab project. `password` is the token."""

    kind: Literal["gitlab"] = Field("gitlab", description="`gitlab`")
    url: SafeAddress = Field("https://gitlab.com", description="Address of the server.")
    project: str = Field(pattern=r"^[\w.-]+(/[\w.-]+)*$", description="Path of the project, e.g. acme/ops.")
    label: Name = Field("streamwarden", description="Label of all tickets; a new warehouse finds existing ones by it.")
    labels: list[Name] = Field(default_factory=list, description="Further labels.")
    assignee_ids: list[int] = Field(default_factory=list, description="Ids of the assignees of new tickets.")


class ServiceNow(Credentials):
    """Incidents in ServiceNow. `user` and `password` of an account, or `password` alone as an OAuth token."""

    kind: Literal["servicenow"] = Field("servicenow", description="`servicenow`")
    url: SafeAddress = Field(description="Address of the instance, e.g. https://acme.service-now.com")
    assignment_group: str | None = Field(
        None, pattern="^[0-9a-f]{32}$", description="sys_id of the assignment group of new incidents."
    )
    fields: dict[str, str] = Field(default_factory=dict, description="Further fields of new incidents.")
    close_code: Name = Field("Resolved by caller", description="Resolution code; it must exist in the instance.")


class Mail(Credentials):
    """Mail, one thread for each ticket."""

    kind: Literal["mail"] = Field("mail", description="`mail`")
    host: Name = Field(description="The mail server.")
    port: int = Field(587, ge=1, le=65535, description="Its port: 587 for `starttls`, 465 for `tls`, 25 for `none`.")
    security: Literal["starttls", "tls", "none"] = Field("starttls", description="How the connection is encrypted.")
    mail_from: MailAddress = Field(description="Sender.")
    mail_to: list[MailAddress] = Field(min_length=1, description="Recipients.")

    @model_validator(mode="after")
    def _has_one_source_of_credentials(self) -> Any:
        """Both may be missing: some servers accept mail from their own network without credentials."""
        if self.password and self.connection:
            raise ValueError("needs `password` or `connection`, and not both")
        if self.security == "none" and (self.password or self.connection or not is_loopback(self.host)):
            raise ValueError("`security: none` is allowed only for localhost, and without password")
        return self


Tracker = Annotated[
    Alertmanager | Console | Roundup | Github | Jira | PagerDuty | Slack | Webhook | Gitlab | ServiceNow | Mail,
    Field(discriminator="kind"),
]

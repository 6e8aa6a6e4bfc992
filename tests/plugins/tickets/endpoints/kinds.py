"""Every kind of tracker that has an endpoint, and how to open a sink on it."""

from __future__ import annotations

from importlib import import_module

import httpx
from streamwarden.base.config.trackers import Alertmanager as AlertmanagerSettings
from streamwarden.base.config.trackers import Credentials
from streamwarden.base.config.trackers import Github as GithubSettings
from streamwarden.base.config.trackers import Gitlab as GitlabSettings
from streamwarden.base.config.trackers import Jira as JiraSettings
from streamwarden.base.config.trackers import Mail as MailSettings
from streamwarden.base.config.trackers import PagerDuty as PagerDutySettings
from streamwarden.base.config.trackers import ServiceNow as ServiceNowSettings
from streamwarden.base.config.trackers import Slack as SlackSettings
from streamwarden.base.config.trackers import Webhook as WebhookSettings
from streamwarden.tickets.sinks.contract import Sink
from streamwarden.tickets.sinks.http import Network
from streamwarden.tickets.sinks.mail import Tracker as MailTracker

from tests.plugins.tickets.endpoints import (
    alertmanager,
    github,
    gitlab,
    jira,
    mail,
    pagerduty,
    servicenow,
    slack,
    webhook,
)
from tests.plugins.tickets.endpoints.endpoint import Clock, Endpoint, InMemory

SITE = "https://acme.atlassian.net"
KINDS: dict[str, tuple[type[Endpoint], Credentials]] = {
    "github": (github.Github, GithubSettings(repository="acme/ops", password=github.TOKEN)),
    "jira": (jira.Jira, JiraSettings(url=SITE, project="OPS", user=jira.USER, password=jira.TOKEN)),
    "jira_data_center": (
        jira.DataCenter,
        JiraSettings(url="https://jira.acme.example", project="OPS", edition="data_center", password=jira.TOKEN),
    ),
    "pagerduty": (
        pagerduty.PagerDuty,
        PagerDutySettings(password=pagerduty.ROUTING_KEY, api_token=pagerduty.TOKEN, user=pagerduty.USER),
    ),
    "gitlab": (gitlab.Gitlab, GitlabSettings(project=gitlab.PROJECT, password=gitlab.TOKEN)),
    "servicenow": (
        servicenow.ServiceNow,
        ServiceNowSettings(
            url="https://acme.service-now.com",
            user=servicenow.USER,
            password=servicenow.PASSWORD,
        ),
    ),
    "slack": (slack.Slack, SlackSettings(channel=slack.CHANNEL, password=slack.TOKEN)),
    "webhook": (
        webhook.Webhook,
        WebhookSettings(url="https://hooks.acme.example/hooks/streamwarden", password=webhook.SECRET),
    ),
    "alertmanager": (
        alertmanager.Alertmanager,
        AlertmanagerSettings(url="https://alertmanager.acme.example", password=alertmanager.TOKEN),
    ),
    "pagerduty_events": (pagerduty.EventsOnly, PagerDutySettings(password=pagerduty.ROUTING_KEY)),
}


MAIL = (
    mail.Mailbox,
    MailSettings(host="mail.acme.example", mail_from="bot@acme.example", mail_to=["team@acme.example"], user="bot",
                 password=mail.PASSWORD),
)  # fmt: skip


def opened(settings: Credentials, transport: InMemory | httpx.MockTransport, clock: Clock) -> Sink:
    """A sink that uses this transport and waits by advancing the clock."""
    kind: str = settings.kind  # type: ignore[attr-defined]
    if isinstance(settings, MailSettings):
        return MailTracker("team", settings, Network(now=lambda: clock.now), mail.post_through(transport))
    network = Network(transport, clock.pause, lambda: clock.now)
    sink: Sink = import_module(f"streamwarden.tickets.sinks.{kind}").Tracker("team", settings, network)
    return sink

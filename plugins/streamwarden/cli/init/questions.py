"""What `streamwarden init` asks a person for."""

from __future__ import annotations

from rich.prompt import Confirm, Prompt

from streamwarden.cli.init.command import Wanted
from streamwarden.cli.shared import out

_SASL = ("SASL_SSL", "SASL_PLAINTEXT")


def asked() -> Wanted:
    """The answers. Passwords are not asked for: only the name of the environment variable that has one."""
    wanted = Wanted()
    servers = Prompt.ask("Kafka bootstrap servers, [NAME=]HOST:PORT,… (empty: none)", default="", console=out)
    if servers.strip():
        wanted.kafka = [servers.strip()]
        wanted.client = _login()
    wanted.aws = Confirm.ask("Search AWS with the credentials of this environment?", default=True, console=out)
    if wanted.aws:
        regions = Prompt.ask("AWS regions, separated by spaces (empty: the default region)", default="", console=out)
        wanted.region = regions.replace(",", " ").split()
    wanted.kubernetes = Confirm.ask("Search the current Kubernetes context, if any?", default=True, console=out)
    hosts = Prompt.ask("Further hosts with agents or exporters (empty: none)", default="", console=out)
    wanted.host = hosts.replace(",", " ").split()
    wanted.scan = Confirm.ask("Try the ports of agents and exporters on the hosts found?", default=True, console=out)
    return wanted


def _login() -> list[str]:
    protocol = Prompt.ask(
        "Its security protocol", choices=["PLAINTEXT", "SSL", *_SASL], default="PLAINTEXT", console=out
    )
    if protocol == "PLAINTEXT":
        return []
    properties = [f"security.protocol={protocol}"]
    if protocol in _SASL:
        mechanisms = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
        mechanism = Prompt.ask("SASL mechanism", choices=mechanisms, default="SCRAM-SHA-512", console=out)
        user = Prompt.ask("User", default="streamwarden", console=out)
        variable = Prompt.ask("Environment variable that has the password", default="KAFKA_PASSWORD", console=out)
        properties += [f"sasl.mechanism={mechanism}", f"sasl.username={user}", f"sasl.password=${{{variable}}}"]
    return properties

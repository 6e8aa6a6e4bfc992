"""kafka-python, for calls that confluent-kafka does not have: log directories, and groups of the Kafka Streams
protocol.

librdkafka's properties are translated to its settings; some kinds of authentication have no equivalent.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError
from streamwarden.base.config import AwsLogin, KafkaCluster
from streamwarden.base.errors import StreamwardenError

from spark_apps.sources.kafka_client import ANSWER_SECONDS
from spark_apps.sources.kafka_oidc import OIDC_PROPERTIES, is_oidc, oidc_provider

_LOGGER = logging.getLogger("kafka")
_LOGGER.addHandler(logging.NullHandler())
_LOGGER.propagate = False

_PLAIN_PROPERTIES = {
    "client.id": "client_id",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
}
_SSL_PROPERTIES = {
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
    "enable.ssl.certificate.verification",
}
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class UnknownWay(Exception):
    """A property for authentication that kafka-python has no equivalent of."""


CannotAsk = (UnknownWay, StreamwardenError, KafkaError, OSError, ValueError, RuntimeError)
"""Errors when the client is created or used."""


def second_client(cluster: KafkaCluster) -> KafkaAdminClient:
    """A client that the caller closes. Raises the errors of `CannotAsk`."""
    return KafkaAdminClient(**client_config(cluster.bootstrap_servers, cluster.client, cluster.aws_login))


def client_config(
    bootstrap_servers: str, properties: Mapping[str, str], login: AwsLogin | None = None
) -> dict[str, Any]:
    """librdkafka's properties as settings of kafka-python; those that only tune the client are left out.

    Raises:
        UnknownWay: a property for authentication has no equivalent in kafka-python.
        StreamwardenError: AWS refuses the login, or a property of OIDC is missing.
    """
    provider = None
    if login is not None:
        from spark_apps.sources.kafka_login import login_properties, oauth_provider, tokens_of

        properties = {k: v for k, v in login_properties(login).items() if k != "oauth_cb"} | dict(properties)
        provider = oauth_provider(tokens_of(login).token) if login.authentication == "iam" else None
    elif is_oidc(properties):
        provider = oidc_provider(properties)
        properties = {k: v for k, v in properties.items() if k not in OIDC_PROPERTIES}
    decisive = {k: v for k, v in properties.items() if k.startswith(("sasl.", "ssl.", "security.", "enable.ssl."))}
    if strange := sorted(decisive.keys() - _PLAIN_PROPERTIES.keys() - _SSL_PROPERTIES):
        raise UnknownWay(f"kafka-python has no equivalent of {', '.join(strange)}")
    settings: dict[str, Any] = {
        "bootstrap_servers": bootstrap_servers.split(","),
        "client_id": "streamwarden",
        "request_timeout_ms": ANSWER_SECONDS * 1000,
        "bootstrap_timeout_ms": ANSWER_SECONDS * 1000,
        **{ours: properties[theirs] for theirs, ours in _PLAIN_PROPERTIES.items() if theirs in properties},
    }
    protocol = settings["security_protocol"] = str(settings.get("security_protocol", "PLAINTEXT")).upper()
    mechanism = settings.get("sasl_mechanism", "GSSAPI")  # librdkafka's default
    if provider is not None:
        settings["sasl_oauth_token_provider"] = provider
    elif protocol.startswith("SASL") and mechanism not in _MECHANISMS:
        known = ", ".join(_MECHANISMS)
        raise UnknownWay(f"kafka-python supports sasl.mechanism {known}, OAUTHBEARER with method oidc, not {mechanism}")
    if protocol.endswith("SSL"):
        settings["ssl_context"] = _ssl_context(properties)
    return settings


def _ssl_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    place = properties.get("ssl.ca.location")
    place = None if place == "probe" else place  # the system's CA certificates
    folder = place if place and Path(place).is_dir() else None
    context = ssl.create_default_context(
        cafile=None if folder else place, capath=folder, cadata=properties.get("ssl.ca.pem")
    )
    if certificate := properties.get("ssl.certificate.location"):
        context.load_cert_chain(certificate, properties.get("ssl.key.location"), properties.get("ssl.key.password"))
    context.check_hostname = properties.get("ssl.endpoint.identification.algorithm", "https") != "none"
    if properties.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context

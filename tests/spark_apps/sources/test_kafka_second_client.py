"""librdkafka's properties as kafka-python's settings: all that concern authentication, or none."""

from __future__ import annotations

import ssl

import pytest

from spark_apps.sources.kafka_second_client import UnknownWay, client_config


def test_user_and_password() -> None:
    properties = {
        "security.protocol": "sasl_plaintext",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "reader",
        "sasl.password": "secret",
        "socket.keepalive.enable": "true",  # tuning only
    }
    settings = client_config("a:9092,b:9092", properties)
    assert settings["bootstrap_servers"] == ["a:9092", "b:9092"]
    assert (settings["security_protocol"], settings["sasl_mechanism"]) == ("SASL_PLAINTEXT", "SCRAM-SHA-512")
    assert (settings["sasl_plain_username"], settings["sasl_plain_password"]) == ("reader", "secret")
    assert "ssl_context" not in settings


@pytest.mark.parametrize(
    ("properties", "checks_host", "verifies"),
    [
        ({}, True, ssl.CERT_REQUIRED),
        ({"ssl.endpoint.identification.algorithm": "none"}, False, ssl.CERT_REQUIRED),
        ({"enable.ssl.certificate.verification": "false"}, False, ssl.CERT_NONE),
    ],
)
def test_certificate_checks(properties: dict[str, str], checks_host: bool, verifies: int) -> None:
    context = client_config("a:9093", {"security.protocol": "SSL"} | properties)["ssl_context"]
    assert (context.check_hostname, context.verify_mode) == (checks_host, verifies)


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ({"security.protocol": "SASL_SSL"}, "GSSAPI"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}, "OAUTHBEARER"),
        ({"security.protocol": "SSL", "ssl.keystore.location": "/a.p12"}, "ssl.keystore.location"),
    ],
)
def test_unsupported_properties_are_named(properties: dict[str, str], named: str) -> None:
    with pytest.raises(UnknownWay, match=named):
        client_config("a:9093", properties)

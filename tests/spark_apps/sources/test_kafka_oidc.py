"""OAuth/OIDC login of both Kafka clients at a real broker that checks signature, issuer, audience, and expiry."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from demo.broker import Broker
from demo.process import free_port
from streamwarden.base.config import KafkaCluster
from streamwarden.base.errors import StreamwardenError

from spark_apps.sources import kafka_oidc
from spark_apps.sources.kafka_client import Connection
from spark_apps.sources.kafka_second_client import CannotAsk, client_config, second_client
from tests.identity_provider import IdentityProvider, an_identity_provider


@pytest.fixture(scope="module")
def shared_provider() -> Iterator[IdentityProvider]:
    with an_identity_provider() as provider:
        yield provider


@pytest.fixture
def provider(shared_provider: IdentityProvider) -> IdentityProvider:
    kafka_oidc._tokens_of.cache_clear()
    shared_provider.life_seconds, shared_provider.issued, shared_provider.response = 900, 0, None
    return shared_provider


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, shared_provider: IdentityProvider) -> Iterator[tuple[Broker, str]]:
    """A broker, and the address of its listener that accepts tokens of the provider."""
    port, sasl_port, controller = free_port(), free_port(), free_port()
    package = "org.apache.kafka.common.security.oauthbearer"
    listener = "listener.name.sasl_plaintext.oauthbearer"
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{sasl_port},CONTROLLER://127.0.0.1:{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{listener}.sasl.jaas.config": f"{package}.OAuthBearerLoginModule required;",
        f"{listener}.sasl.server.callback.handler.class": f"{package}.OAuthBearerValidatorCallbackHandler",
        f"{listener}.sasl.oauthbearer.jwks.endpoint.url": f"{shared_provider.url}/keys",
        f"{listener}.sasl.oauthbearer.expected.audience": "kafka",
        f"{listener}.sasl.oauthbearer.expected.issuer": shared_provider.url,
    }
    options = [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={shared_provider.url}/keys"]
    folder = tmp_path_factory.mktemp("oidc")
    with Broker(folder, port=port, controller_port=controller, settings=settings, options=options) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
        for future in admin.create_topics([NewTopic("orders", 1)]).values():
            future.result(20)
        yield running, f"127.0.0.1:{sasl_port}"


def cluster(address: str, properties: dict[str, str]) -> KafkaCluster:
    client = {"security.protocol": "SASL_PLAINTEXT"} | properties
    return KafkaCluster(name="orders", bootstrap_servers=address, client=client)


@pytest.mark.slow
def test_both_clients_log_in(broker: tuple[Broker, str], provider: IdentityProvider) -> None:
    watched = cluster(broker[1], provider.properties())
    assert "orders" in Connection(watched).metadata().topics
    by_librdkafka = provider.issued
    with second_client(watched) as client:
        assert [directory["broker"] for directory in client.describe_log_dirs()] == [1]
    with second_client(watched) as client:
        client.describe_log_dirs()
    assert (by_librdkafka, provider.issued) == (1, 2), "clients share a token while it is fresh"


@pytest.mark.slow
@pytest.mark.rare
def test_the_broker_rejects_a_token_that_has_expired(broker: tuple[Broker, str], provider: IdentityProvider) -> None:
    """Else the broker of these tests would accept any token."""
    provider.life_seconds = -60
    with pytest.raises(CannotAsk), second_client(cluster(broker[1], provider.properties())) as client:
        client.describe_log_dirs()


@pytest.mark.slow
@pytest.mark.rare
def test_without_a_token_neither_client_waits_for_ever(broker: tuple[Broker, str], provider: IdentityProvider) -> None:
    watched = cluster(broker[1], provider.properties(secret="wr0ng"))
    connection = Connection(watched)
    with pytest.raises(KafkaException) as refused:
        connection.metadata()
    assert "cluster 'orders'" in connection.gap(refused.value) and "wr0ng" not in connection.gap(refused.value)
    with pytest.raises(CannotAsk), second_client(watched) as client:
        client.describe_log_dirs()


def test_a_wrong_secret_is_a_gap_without_the_secret(provider: IdentityProvider) -> None:
    settings = client_config("b:9092", {"security.protocol": "SASL_SSL", **provider.properties(secret="wr0ng")})
    with pytest.raises(StreamwardenError) as refused:
        settings["sasl_oauth_token_provider"].token()
    assert str(refused.value) == f"no token from {provider.url}/token: it responds with status 401, invalid_client"


@pytest.mark.parametrize(
    "response",
    [
        (200, b"<html>sign in</html>"),
        (200, b'{"access_token": 7}'),
        (200, b"[]"),
        (200, b"[" * 100_000),
        (302, b""),
        (503, b'{"error": ["x"]}'),
        (200, b'"' + b"x" * 100_000_000 + b'"'),
    ],
    ids=["html", "number", "list", "deep", "redirect", "error of another form", "huge"],
)
def test_what_is_no_token_is_an_error(provider: IdentityProvider, response: tuple[int, bytes]) -> None:
    provider.response = response
    settings = client_config("b:9092", {"security.protocol": "SASL_SSL", **provider.properties()})
    with pytest.raises(StreamwardenError, match="no token from http"):
        settings["sasl_oauth_token_provider"].token()


def test_an_endpoint_that_is_gone_is_an_error(provider: IdentityProvider) -> None:
    gone = {"sasl.oauthbearer.token.endpoint.url": f"http://127.0.0.1:{free_port()}/token"}
    settings = client_config("b:9092", {"security.protocol": "SASL_SSL", **provider.properties(), **gone})
    with pytest.raises(StreamwardenError, match="ConnectError"):
        settings["sasl_oauth_token_provider"].token()


def test_extensions_go_with_the_token(provider: IdentityProvider) -> None:
    settings = client_config("b:9092", {"security.protocol": "SASL_SSL", **provider.properties()})
    sent = settings["sasl_oauth_token_provider"].extensions()
    assert sent == {"logicalCluster": "lkc-1", "identityPoolId": "pool-7"}


def test_a_token_is_fetched_again_before_it_expires(
    provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = client_config("b:9092", {"security.protocol": "SASL_SSL", **provider.properties()})
    fetch = settings["sasl_oauth_token_provider"].token
    first, now = fetch(), time.time()
    monkeypatch.setattr(time, "time", lambda: now + 600)
    assert fetch() == first
    monkeypatch.setattr(time, "time", lambda: now + 800)
    fetch()
    assert provider.issued == 2


@pytest.mark.parametrize("name", ["client.id", "client.secret", "token.endpoint.url"])
def test_a_missing_property_is_named(name: str) -> None:
    given = {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.method": "oidc"}
    given |= {f"sasl.oauthbearer.{one}": "http://x" for one in ("client.id", "client.secret", "token.endpoint.url")}
    del given[f"sasl.oauthbearer.{name}"]
    with pytest.raises(StreamwardenError, match=f"needs sasl.oauthbearer.{name}"):
        client_config("b:9092", {"security.protocol": "SASL_SSL"} | given)

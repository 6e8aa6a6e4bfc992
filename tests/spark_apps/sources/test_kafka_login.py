"""Login to Amazon MSK: IAM tokens against the strict AWS endpoint and a real broker's OAUTHBEARER listener; secrets."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from demo.aws_endpoint import AwsEndpoint
from demo.broker import Broker
from demo.msk_world import MskCluster
from demo.process import free_port
from demo.world import World
from streamwarden.base.config import CONFIG_ENV, AwsLogin, KafkaCluster
from streamwarden.base.errors import StreamwardenError

from spark_apps.sources import kafka_login
from spark_apps.sources.kafka_client import Connection
from spark_apps.sources.kafka_login import Token, login_properties, scram_user, sign
from spark_apps.sources.kafka_second_client import client_config, second_client
from tests.spark_apps.aws_world import ACCOUNT, NOW, OTHER, REGION

LOGIN = AwsLogin(account=ACCOUNT, region=REGION)
SECRET = AwsLogin(account=ACCOUNT, region=REGION, authentication="scram", secret="AmazonMSK_watch")


@pytest.fixture(autouse=True)
def _nothing_is_remembered() -> None:
    kafka_login.tokens_of.cache_clear()
    kafka_login._scram_user.cache_clear()


@pytest.fixture
def endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsEndpoint]:
    world = World(seed=3, now=lambda: NOW)
    world.msk.add(MskCluster(ACCOUNT, REGION, "orders"))
    world.msk.add(MskCluster(OTHER, REGION, "theirs"))
    world.msk.secrets[ACCOUNT, REGION, "AmazonMSK_watch"] = '{"username": "watch", "password": "pw"}'
    file = tmp_path / "streamwarden.yaml"
    role = f"arn:aws:iam::{OTHER}:role/streamwarden"
    entries = [{"account": ACCOUNT, "regions": [REGION]}, {"account": OTHER, "regions": [REGION], "role_arn": role}]
    file.write_text(json.dumps({"msk": entries}))
    with AwsEndpoint(world) as running:
        for name, value in {**running.environment(ACCOUNT, REGION), CONFIG_ENV: str(file)}.items():
            monkeypatch.setenv(name, value)
        yield running


def test_a_token_is_a_presigned_connect_of_the_region_and_lives_15_minutes(endpoint: AwsEndpoint) -> None:
    token = sign(LOGIN)
    url = urlsplit(base64.urlsafe_b64decode(token.text + "=" * (-len(token.text) % 4)).decode())
    query = {name: values[0] for name, values in parse_qs(url.query).items()}
    assert url.hostname == f"kafka.{REGION}.amazonaws.com" and query["Action"] == "kafka-cluster:Connect"
    key_id, secret_key = endpoint.access_key(ACCOUNT)
    assert (
        query["X-Amz-Credential"].startswith(f"{key_id}/") and f"/{REGION}/kafka-cluster/" in query["X-Amz-Credential"]
    )
    assert query["X-Amz-Expires"] == "900" and 880 < token.expires_at - time.time() <= 900
    assert token.is_fresh and not Token("", time.time() - 800, time.time() + 100).is_fresh
    assert secret_key not in token.text


def test_a_token_of_another_account_is_signed_by_its_role(endpoint: AwsEndpoint) -> None:
    token = sign(AwsLogin(account=OTHER, region=REGION))
    url = base64.urlsafe_b64decode(token.text + "=" * (-len(token.text) % 4)).decode()
    assert "ASIA" in url and "X-Amz-Security-Token" in url
    assert endpoint.calls["AssumeRole"] == 1


def test_a_token_is_used_again_while_it_is_fresh(endpoint: AwsEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    made = iter([Token("a", time.time() - 10, time.time() + 1), Token("b", time.time(), time.time() + 900)])
    monkeypatch.setattr(kafka_login, "sign", lambda login: next(made))
    tokens = kafka_login.tokens_of(LOGIN)
    assert [tokens.token().text for _ in range(3)] == ["a", "b", "b"]


def test_a_refused_role_is_one_sentence_without_keys(endpoint: AwsEndpoint) -> None:
    endpoint.faults.inject("deny", action="AssumeRole", times=None)
    cluster = KafkaCluster(
        name="theirs", bootstrap_servers="127.0.0.1:1", aws_login=AwsLogin(account=OTHER, region=REGION)
    )
    with pytest.raises(StreamwardenError) as refused:
        Connection(cluster)
    assert str(refused.value).startswith("kafka cluster 'theirs': ") and "cannot be assumed" in str(refused.value)
    assert "AKIA" not in str(refused.value)


def test_user_and_password_come_from_the_secret(endpoint: AwsEndpoint) -> None:
    assert scram_user(SECRET) == ("watch", "pw")
    properties = login_properties(SECRET)
    assert properties["sasl.mechanism"] == "SCRAM-SHA-512" and properties["sasl.username"] == "watch"
    assert endpoint.calls["GetSecretValue"] == 1


@pytest.mark.parametrize("text", ["[1]", "no JSON", '{"username": "watch"}'])
def test_a_secret_of_another_form(endpoint: AwsEndpoint, text: str) -> None:
    endpoint.world.msk.secrets[ACCOUNT, REGION, "AmazonMSK_watch"] = text
    with pytest.raises(StreamwardenError, match="must be JSON with `username` and `password`"):
        scram_user(SECRET)


def test_a_secret_that_may_not_be_read(endpoint: AwsEndpoint) -> None:
    endpoint.faults.inject("deny", action="GetSecretValue", times=None)
    with pytest.raises(StreamwardenError, match="access denied for secretsmanager:GetSecretValue"):
        scram_user(SECRET)


def test_kafka_python_logs_in_likewise(endpoint: AwsEndpoint) -> None:
    settings = client_config("b:9098", {}, LOGIN)
    assert (settings["security_protocol"], settings["sasl_mechanism"]) == ("SASL_SSL", "OAUTHBEARER")
    assert settings["sasl_oauth_token_provider"].token() == kafka_login.tokens_of(LOGIN).token().text
    settings = client_config("b:9096", {}, SECRET)
    assert (settings["sasl_mechanism"], settings["sasl_plain_username"]) == ("SCRAM-SHA-512", "watch")


def unsecured(seconds: float) -> Token:
    """A token as Kafka's unsecured validator takes it: a JSON web signature without one (RFC 7515, appendix A.5)."""
    now = time.time()

    def part(content: dict[str, object]) -> str:
        return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")

    claims = part({"sub": "streamwarden", "iat": now - 1, "exp": now + seconds})
    return Token(f"{part({'alg': 'none'})}.{claims}.", now, now + seconds)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, KafkaCluster]]:
    """A broker whose second listener wants tokens, and wants them again after 2 s."""
    port, sasl_port, controller = free_port(), free_port(), free_port()
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    listeners = (
        f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{sasl_port},CONTROLLER://127.0.0.1:{controller}"
    )
    settings = {
        "listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": f"{module} required;",
        "listener.name.sasl_plaintext.oauthbearer.connections.max.reauth.ms": "2000",
    }
    folder = tmp_path_factory.mktemp("oauth")
    with Broker(folder, port=port, controller_port=controller, settings=settings) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
        for future in admin.create_topics([NewTopic("orders", 1)]).values():
            future.result(20)
        client = {"security.protocol": "SASL_PLAINTEXT"}
        yield (
            running,
            KafkaCluster(name="orders", bootstrap_servers=f"127.0.0.1:{sasl_port}", client=client, aws_login=LOGIN),
        )


@pytest.mark.rare
@pytest.mark.slow
def test_both_clients_log_in_to_a_broker_by_token(
    broker: tuple[Broker, KafkaCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_login, "sign", lambda login: unsecured(900))
    _, cluster = broker
    assert "orders" in Connection(cluster).metadata().topics
    with second_client(cluster) as client:
        assert [directory["broker"] for directory in client.describe_log_dirs()] == [1]


@pytest.mark.slow
@pytest.mark.rare
def test_a_token_that_expires_is_replaced(broker: tuple[Broker, KafkaCluster], monkeypatch: pytest.MonkeyPatch) -> None:
    signed: list[Token] = []

    def short_lived(login: AwsLogin) -> Token:
        signed.append(unsecured(3))
        return signed[-1]

    monkeypatch.setattr(kafka_login, "sign", short_lived)
    connection = Connection(broker[1])
    until = time.monotonic() + 8
    while time.monotonic() < until:
        assert "orders" in connection.admin.list_topics(timeout=5).topics
        time.sleep(0.2)
    assert len(signed) >= 3


@pytest.mark.rare
@pytest.mark.slow
def test_a_token_that_the_broker_rejects_is_a_gap(
    broker: tuple[Broker, KafkaCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    expired = unsecured(-60)._replace(expires_at=time.time() + 900)
    monkeypatch.setattr(kafka_login, "sign", lambda login: expired)
    connection = Connection(broker[1])
    with pytest.raises(KafkaException) as refused:
        connection.metadata()
    assert "rejects the credentials" in connection.gap(refused.value)

"""`streamwarden config check --probe`: what works, what fails, and that the printed action fixes it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import sqlalchemy as sa
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from demo.aws_endpoint import AwsEndpoint
from demo.msk_world import MskCluster
from demo.process import free_port
from demo.world import World
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV, load_config
from streamwarden.base.warehouse import engine
from streamwarden.cli.probe import aws, jvms, kafka, msk, services
from streamwarden.cli.probe.result import Answer, Question, ask_all

from spark_apps.sources import msk_discovery as discovery
from tests.answering import answering
from tests.conftest import a_database
from tests.docker.documented import bindings_of, block
from tests.plugins.cli.test_cli import in_this_process
from tests.secured_broker import secured_broker
from tests.spark_apps.aws_world import ACCOUNT, OTHER, REGION
from tests.spark_apps.offsets_log import commit
from tests.spark_apps.sources.agents import running_agents
from tests.spark_apps.sources.node_page import node_page
from tests.spark_apps.sources.registry import registry
from tests.spark_apps.sources.test_rule_sets import PAGES

Probe = Callable[..., list[Answer]]


@pytest.fixture
def config_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Writes a config, puts it in force and loads it."""

    def write(**sections: Any) -> Any:
        file = tmp_path / "streamwarden.yaml"
        file.write_text(json.dumps(sections))
        monkeypatch.setenv(CONFIG_ENV, str(file))
        load_config.__globals__["_load"].cache_clear()
        return load_config()

    return write


def problems(answers: list[Answer]) -> dict[str, str]:
    return {answer.asked: answer.problem for answer in answers if answer.problem is not None}


def printed_actions(answers: list[Answer]) -> list[str]:
    return list(dict.fromkeys(answer.action for answer in answers if answer.action))


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsEndpoint]:
    world = World(seed=1, now=lambda: datetime.now(UTC))
    world.add_volume(ACCOUNT, REGION, "vol-0a", "gp3", 10)
    world.add_volume(OTHER, REGION, "vol-0b", "gp3", 10)
    with AwsEndpoint(world) as running:
        for name, value in running.environment(ACCOUNT, REGION).items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.fixture
def ask_aws(config_of: Callable[..., Any]) -> Probe:
    def ask(**account: Any) -> list[Answer]:
        config = config_of(aws=[{"account": ACCOUNT, "regions": [REGION]} | account])
        return ask_all([*aws.questions(config.aws)])

    return ask


def test_aws_is_asked_for_all_that_the_docs_grant(endpoint: AwsEndpoint, ask_aws: Probe) -> None:
    answers = ask_aws(regions=[REGION, "us-east-1"])
    assert problems(answers) == {}
    assert {answer.source for answer in answers} == {f"aws {ACCOUNT}/{REGION}", f"aws {ACCOUNT}/us-east-1"}
    [documented] = json.loads(block("iam-read"))["Statement"]
    assert {answer.asked for answer in answers} == {*documented["Action"], "sts:GetCallerIdentity"}
    assert endpoint.calls["GetMetricData"] == endpoint.calls["DescribeVolumes"] == 2


def test_denied_aws_calls_are_printed_with_one_policy_statement(endpoint: AwsEndpoint, ask_aws: Probe) -> None:
    for action in ("DescribeInstances", "GetMetricData"):
        endpoint.faults.inject("deny", times=None, action=action)
    answers = ask_aws()
    assert problems(answers).keys() == {"ec2:DescribeInstances", "cloudwatch:GetMetricData"}
    assert "access denied for ec2:DescribeInstances" in problems(answers)["ec2:DescribeInstances"]
    [actions] = printed_actions(answers)
    statement = json.loads(actions.partition(": ")[2])
    assert statement == {
        "Effect": "Allow",
        "Action": ["ec2:DescribeInstances", "cloudwatch:GetMetricData"],
        "Resource": "*",
    }


def test_a_role_that_cannot_be_taken(endpoint: AwsEndpoint, ask_aws: Probe) -> None:
    role = f"arn:aws:iam::{OTHER}:role/streamwarden-read"
    answers = ask_aws(account=OTHER, role_arn=role)
    assert problems(answers).keys() == {"sts:AssumeRole"}
    assert f'"Action": ["sts:AssumeRole"], "Resource": "{role}"' in printed_actions(answers)[0]
    endpoint.roles[role] = None
    assert problems(ask_aws(account=OTHER, role_arn=role)) == {}


def test_credentials_of_another_account(endpoint: AwsEndpoint, ask_aws: Probe) -> None:
    assert f"those of account {ACCOUNT}, not of {OTHER}" in problems(ask_aws(account=OTHER))["sts:GetCallerIdentity"]


def test_an_aws_that_cannot_be_reached_takes_no_time(ask_aws: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    begun = time.monotonic()
    answers = ask_aws()
    assert time.monotonic() - begun < 20
    assert "no response after 2 attempts" in problems(answers)["ec2:DescribeVolumes"]
    assert "hunter2" not in str(answers)


@pytest.mark.rare
@pytest.mark.slow
def test_each_printed_kafka_command_fixes_its_problem(config_of: Callable[..., Any], tmp_path: Path) -> None:
    """Starts without any right and runs nothing but the printed commands until every request works."""
    with secured_broker(tmp_path, {"streamwarden": "secret"}) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        topic = "orders-totals-changelog"
        for future in admin.create_topics([NewTopic(topic, 1, 1)]).values():
            future.result()
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce(topic, value="1")
        assert producer.flush(20) == 0
        commit(broker.bootstrap_servers, "orders", TopicPartition(topic, 0, 1))
        config = config_of(kafka=[broker.cluster("c", "streamwarden", "secret")])
        granted: list[Any] = []
        rounds: list[set[str]] = []
        while problems(answers := ask_all([*kafka.questions(config.kafka)])) and len(rounds) < 4:
            rounds.append(set(problems(answers)))
            new = [binding for actions in printed_actions(answers) for binding in bindings_of(actions)]
            granted += new
            for future in admin.create_acls(new).values():
                future.result()
            time.sleep(1)  # the broker follows its metadata log
        assert rounds == [
            {"Describe on topics", "Describe on groups", "DescribeLogDirs", "DescribeConfigs on the cluster"},
            {"DescribeConfigs on topics", "Read on __consumer_offsets", f"Read on {topic}"},
        ]
        assert problems(answers) == {}
        documented = [binding for line in block("kafka-acls").splitlines() for binding in bindings_of(line)]
        assert {str(binding) for binding in granted} == {str(binding) for binding in documented}
        assert kafka.NONEXISTENT not in admin.list_topics(timeout=10).topics

        config = config_of(kafka=[broker.cluster("c", "streamwarden", "hunter2")])
        [answer] = ask_all([*kafka.questions(config.kafka)])
        assert "rejects the credentials" in str(answer.problem) and "sasl.password" in str(answer.action)
        assert "hunter2" not in str(answer)


def test_a_cluster_that_is_away(config_of: Callable[..., Any]) -> None:
    config = config_of(kafka=[{"name": "c", "bootstrap_servers": f"127.0.0.1:{free_port()}"}])
    [answer] = ask_all([*kafka.questions(config.kafka)])
    assert "no broker of cluster 'c'" in str(answer.problem) and "bootstrap_servers" in str(answer.action)


class _Exporter(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        is_open = self.path == "/metrics" or self.headers["authorization"]
        page = node_page().encode() if is_open else b""
        self.send_response(200 if is_open else 401)
        self.send_header("content-length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


def test_jvms_that_answer_are_one_line_and_others_one_each(config_of: Callable[..., Any]) -> None:
    with answering(ThreadingHTTPServer(("127.0.0.1", 0), _Exporter)) as server:
        here = f"http://127.0.0.1:{server.server_port}"
        node = {"role": "node", "cluster": "c", "protocol": "prometheus"}
        nobody = f"http://127.0.0.1:{free_port()}/metrics"
        config = config_of(
            kafka=[{"name": "c", "bootstrap_servers": "b"}],
            jmx=[node | {"url": f"{here}/metrics"}, node | {"url": f"{here}/locked"}, node | {"url": nobody}],
            jmx_files=[{"path": "/nowhere/*.json"}],
        )
        answers = ask_all([*jvms.questions(config)])
    assert problems(answers) == {
        f"node of c at {here}/locked": "HTTP 401: `user` or `password` of the endpoint is missing or was rejected",
        f"node of c at {nobody}": "cannot connect (connection refused or unknown host)",
        "targets of /nowhere/*.json": "no such file",
    }
    line, of_metrics = [answer for answer in answers if answer.problem is None]
    assert line.asked == "nodes of c" and line.answer.startswith("1 responded, ")
    assert of_metrics.asked == f"metrics of node of c at {here}/metrics"
    assert of_metrics.answer == "13 of 13 metrics recognized" and of_metrics.action is None
    assert [re.split("[,( ]", actions)[0] for actions in printed_actions(answers)] == ["set", "start"]


def test_what_an_exporter_does_not_expose_is_said_with_the_rules_for_it(config_of: Callable[..., Any]) -> None:
    with running_agents() as agents, running_agents() as others:
        example = (PAGES / "broker-kafka-2_0_0.yml-1.0.1.txt").read_bytes()
        pages = [agents.serve(example), others.serve(example + b'kafka_log_size_value{topic="t"} 1\n')]
        broker = {"role": "broker", "cluster": "c", "protocol": "prometheus"}
        config = config_of(
            kafka=[{"name": "c", "bootstrap_servers": "b"}], jmx=[broker | {"url": page} for page in pages]
        )
        answers = ask_all([*jvms.questions(config)])
    partial, unclear = (next(a for a in answers if a.asked == f"metrics of broker of c at {page}") for page in pages)
    assert partial.problem is None and partial.answer.startswith(
        "35 of 47 metrics recognized; not exposed: heap_used_bytes,"
    )
    assert partial.answer.endswith(
        "; not evaluated here: broker_file_descriptors_high, broker_requests_high, broker_slow"
    )
    assert partial.answer == unclear.answer and partial.action is not None
    assert partial.action.splitlines()[0] == "put first under `rules` of the JMX exporter's file:"
    assert (
        "- pattern: 'kafka.server<type=KafkaRequestHandlerPool, name=RequestHandlerAvgIdlePercent.*><>OneMinuteRate'"
        in partial.action.splitlines()
    )
    assert problems(answers) == {
        f"names of broker of c at {pages[1]}": "kafka_log_log_size and kafka_log_size_value:"
        " different values of the same attribute"
    }


class _Pair(_Exporter):
    """A Thanos in front of two servers that scrape the same machine."""

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
        series = [
            {
                "metric": {"__name__": "node_load1", "instance": "m:9100", "prometheus_replica": replica},
                "values": [[float(form["start"][0]), "1"]],
            }
            for replica in "ab"
        ]
        page = json.dumps({"status": "success", "data": {"result": series}}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)


def test_a_match_that_selects_several_replicas_is_said(config_of: Callable[..., Any]) -> None:
    with answering(ThreadingHTTPServer(("127.0.0.1", 0), _Pair)) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        node = {"role": "node", "cluster": "c", "protocol": "prometheus_api", "url": url, "match": 'instance="m:9100"'}
        config = config_of(kafka=[{"name": "c", "bootstrap_servers": "b"}], jmx=[node])
        answers = ask_all([*jvms.questions(config)])
    assert problems(answers) == {}
    assert {answer.answer.partition("; not exposed")[0] for answer in answers} == {
        "1 responded, at least 1 readings each",
        "1 of 13 metrics recognized",
        "`match` selects several replicas; each series is read once (prometheus_replica: a, b)",
    }


@pytest.mark.parametrize(
    ("behaviour", "problem"),
    [("good", None), ("secured", "rejected user and password"), ("elsewhere", "not a Schema Registry")],
)
def test_a_schema_registry(config_of: Callable[..., Any], behaviour: str, problem: str | None) -> None:
    with registry() as (url, _):
        cluster = {"name": "c", "bootstrap_servers": "b", "schema_registry": {"url": f"{url}/{behaviour}"}}
        config = config_of(kafka=[cluster])
        answers = ask_all([*services.questions(config)][:1])
    assert (problem is None and problems(answers) == {}) or problem in str(problems(answers))


def test_a_tracker_that_is_away(config_of: Callable[..., Any], warehouse_url: str) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    config = config_of(tickets={"trackers": {"r": {"kind": "roundup", "url": url, "user": "u", "password": "hunter3"}}})
    answers = ask_all([*services.questions(config)])
    assert problems(answers).keys() == {"login and project"}
    assert "hunter" not in str(answers)


def test_a_warehouse_without_rights_and_tables(config_of: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with a_database() as url:
        with engine(url).begin() as owner:
            owner.execute(sa.text("drop role if exists probe_reader"))
            owner.execute(sa.text("create role probe_reader login"))
        monkeypatch.setenv(WAREHOUSE_ENV, re.sub(r"//[^/]*?@", "//probe_reader@", url))
        config = config_of()
        answers = ask_all([*services.questions(config)])
        assert problems(answers).keys() == {"create schemas", "its tables"}
        grant, migrate = printed_actions(answers)
        assert migrate == "streamwarden migrate"
        with engine(url).begin() as owner:
            owner.exec_driver_sql(grant.partition(": ")[2])
        assert problems(ask_all([*services.questions(config)])).keys() == {"its tables"}
        engine(re.sub(r"//[^/]*?@", "//probe_reader@", url)).dispose()
        with engine(url).begin() as owner:
            owner.exec_driver_sql("drop owned by probe_reader; drop role probe_reader")


def test_a_source_that_hangs_or_raises_holds_up_nobody() -> None:
    def hang() -> Iterator[Answer]:
        time.sleep(60)
        yield Answer("a", "b")

    def fail() -> Iterator[Answer]:
        yield Answer("b", "first")
        raise ValueError("http://u:hunter2@h/x is bad")

    begun = time.monotonic()
    answers = ask_all([Question("a", hang), Question("b", fail)], timeout_seconds=0.2)
    assert time.monotonic() - begun < 30  # the source hangs for 60 s
    assert problems(answers)["any response"] == "http://h/x is bad"
    assert "no answer within 0.2 s" in str(answers)


def test_the_table_and_the_exit_code(tmp_path: Path, warehouse_url: str) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("tickets: {trackers: {}}")
    done = in_this_process("config", "check", str(file), "--probe")
    assert done.returncode == 0
    assert re.search(r"warehouse +connect +PostgreSQL 1\d", done.stdout)
    file.write_text(f"kafka: [{{name: c, bootstrap_servers: '127.0.0.1:{free_port()}'}}]")
    done = in_this_process("config", "check", str(file), "--probe")
    assert done.returncode == 1
    assert "To fix this:" in done.stdout and "  kafka c: check bootstrap_servers" in done.stdout
    assert re.fullmatch(r"streamwarden: 1 of \d requests failed: see the lines in red\.\n", done.stderr)


def test_msk_is_asked_and_what_it_denies_comes_with_a_statement(
    endpoint: AwsEndpoint, config_of: Callable[..., Any]
) -> None:
    discovery._discover.cache_clear()
    endpoint.world.msk.add(MskCluster(ACCOUNT, REGION, "orders", level="PER_BROKER"))
    endpoint.faults.inject("deny", action="GetBootstrapBrokers", times=None)
    config = config_of(msk=[{"account": ACCOUNT, "regions": [REGION], "clusters": "orders"}])
    found, addresses, monitoring = ask_all([*msk.questions(config)])
    assert found.answer == "ACTIVE, standard, 3 brokers, monitoring level PER_BROKER" and found.problem is None
    assert addresses.problem and "access denied for kafka:GetBootstrapBrokers" in addresses.problem
    assert addresses.action and '"Action": ["kafka:GetBootstrapBrokers"]' in addresses.action
    assert monitoring.problem is None and "open monitoring (JMX exporter) is off" in monitoring.answer

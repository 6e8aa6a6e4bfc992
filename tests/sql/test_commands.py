"""Options in the commands of detectors exist: against AWS's service models, and against the help of Kafka's tools."""

from __future__ import annotations

import re
import subprocess
from functools import cache

import botocore.session
import pytest
from botocore import xform_name
from demo.jars import BROKER, TOOLS, classpath
from streamwarden.detectors import Finding
from streamwarden.detectors.resources import Resource

from spark_apps.runtime.class_archive import java
from tests.sql.cases import DETECTORS
from tests.sql.commands import faults_of

TEMPLATES = sorted(
    {line for one in DETECTORS.values() for verdict in one.verdicts.values() for line in verdict.commands}
)
TOOLS_USED = sorted({name for line in TEMPLATES for name in re.findall(r"kafka-[a-z-]+\.sh", line)})
SUBCOMMANDS = {
    "kafka-metadata-quorum.sh": ("describe",),
    "kafka-transactions.sh": ("abort", "find-hanging", "describe"),
}
AWS = [template for template in TEMPLATES if "aws " in template]
CLI_OPTIONS = {"region", "query", "output", "max-items", "filters"}  # of every `aws` command; its SDK name is Filters
MAIN_CLASSES = {
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
    "kafka-console-consumer.sh": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-consumer-groups.sh": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-get-offsets.sh": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-leader-election.sh": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs.sh": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum.sh": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-reassign-partitions.sh": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions.sh": "org.apache.kafka.tools.TransactionsCommand",
}


def _options(text: str) -> set[str]:
    return set(re.findall(r"(?<![-\w])--([a-z][a-z-]+)", text))


@pytest.mark.parametrize("template", AWS)
def test_options_of_aws_commands_exist(template: str) -> None:
    text = " ".join(template.split())
    for service, operation, rest in re.findall(r"aws ([a-z0-9]+) ([a-z-]+)(.*?)(?=aws [a-z0-9]+ [a-z-]+ --|$)", text):
        model = botocore.session.get_session().get_service_model(service)
        operations = {xform_name(name, "-"): name for name in model.operation_names}
        assert operation in operations
        known = {xform_name(name, "-") for name in model.operation_model(operations[operation]).input_shape.members}
        assert {"region"} <= _options(rest) <= known | CLI_OPTIONS


@cache
def _options_of_tool(tool: str) -> frozenset[str]:
    jars = f"{classpath(TOOLS)}:{classpath(BROKER)}"  # kafka-configs.sh is in the broker's
    command = [java(), "-XX:TieredStopAtLevel=1", "-cp", jars, MAIN_CLASSES[tool]]
    asked = [["--help"], *(["--bootstrap-server", "h:1", part, "--help"] for part in SUBCOMMANDS.get(tool, ()))]
    helped = [subprocess.run([*command, *words], capture_output=True, text=True, timeout=120) for words in asked]
    return frozenset(_options("".join(one.stdout + one.stderr for one in helped)))


@pytest.mark.rare
@pytest.mark.slow
@pytest.mark.parametrize(
    "tool", sorted({name for line in TEMPLATES for name in re.findall(r"kafka-[a-z-]+\.sh", line)})
)
def test_options_of_kafka_commands_exist(tool: str) -> None:
    known = _options_of_tool(tool)
    assert "bootstrap-server" in known, known
    for template in TEMPLATES:
        for rest in re.findall(re.escape(tool) + r"(.*?)(?=kafka-[a-z-]+\.sh|\||$)", " ".join(template.split())):
            assert _options(rest) <= known, template


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        ("kafka-topics.sh --list; kafka-topics.sh --list", "several commands"),
        ("kafka-topics.sh --list && cat x", "several commands"),
        ("prlimit --pid $(pgrep -f kafka.Kafka)", "the first of several processes of a host"),
        ("systemctl edit kafka # [Service]", "unknown program systemctl"),
        ("-Xmx256m", "unknown program -Xmx256m"),
        ("cat 'x", "bash: "),
        ("kafka-configs.sh --add-config retention.ms=", "a value is missing"),
        ("kafka-topics.sh --topic ''", "a value is missing"),
        ("streamwarden psql -c 'select 1'", "no such subcommand"),
        ("kafka-consumer-groups.sh --delete --group g", "deletes data"),
    ],
)
def test_a_command_that_is_not_safe_to_paste_is_found(command: str, fault: str) -> None:
    finding = Finding("d", Resource("topic", {}, "t", None, None), "r", "firing", "info", {}, "M.", commands=(command,))
    assert any(line.startswith(fault) for line in faults_of(finding))
    safe = ("kafka-topics.sh --topic 'a;b' | cat", "streamwarden warehouse psql", "kafka-configs.sh --delete-config x")
    assert faults_of(Finding(**{**vars(finding), "commands": safe})) == []

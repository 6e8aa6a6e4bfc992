"""Commands that change a system are separated from those that only read."""

from __future__ import annotations

import pytest
from streamwarden.rendering.commands import changing, reading

READING = [
    "kafka-topics.sh --bootstrap-server h:1 --describe --topic 'a|b'",
    "kafka-reassign-partitions.sh --bootstrap-server h:1 --list",
    "kafka-consumer-groups.sh --bootstrap-server h:1 --group g --topic t:0 --reset-offsets --to-offset 42 --dry-run",
    "kafka-console-consumer.sh --bootstrap-server h:1 --topic t --partition 0 --offset 41 --max-messages 1",
    "kafka-transactions.sh --bootstrap-server h:1 find-hanging --topic t --partition 0",
    "aws ec2 describe-volumes-modifications --region r --volume-ids vol-1",
    "kubectl -n apps logs fees-1 -c app --previous --tail=50",
    "kubectl -n apps exec fees-1 -c app -- jcmd 1 VM.flags",
    "curl -s http://w:8083/connectors/a/status",
    "streamwarden plan replicas c",
    "du -xh --max-depth=3 /data | sort -h | tail -n 20",
    "for pid in $(pgrep -f -- 'java.*a'); do jcmd \"$pid\" VM.native_memory summary; done",
]
CHANGING = [
    "kafka-configs.sh --bootstrap-server h:1 --alter --entity-type topics --entity-name list --add-config a.ms=1",
    "kafka-consumer-groups.sh --bootstrap-server h:1 --group g --topic t:0 --reset-offsets --to-offset 42 --execute",
    "kafka-leader-election.sh --bootstrap-server h:1 --election-type preferred --all-topic-partitions",
    "kafka-transactions.sh --bootstrap-server h:1 abort --topic t --partition 0 --start-offset 500",
    "kafka-reassign-partitions.sh --bootstrap-server h:1 --reassignment-json-file r.json --execute --throttle 9",
    "aws ec2 modify-volume --region r --volume-id vol-1 --size 521",
    "aws kafka reboot-broker --region r --cluster-arn arn --broker-ids 1",
    "kubectl -n apps rollout undo deployment/fees",
    "curl -s -X POST 'http://w:8083/connectors/a/restart?includeTasks=true'",
    "echo vm.max_map_count=262144 > /etc/sysctl.d/90-kafka.conf",
    "sysctl -w vm.max_map_count=262144",
    "xfs_growfs /data",
    "for pid in $(pgrep -f -- 'java.*a'); do jcmd \"$pid\" GC.class_histogram | head -n 30; done",
    'jcmd "$(lsof -t -i tcp:9010 -s tcp:listen)" GC.class_histogram | head -n 40',
    "kubectl -n apps exec fees-1 -c app -- jcmd 1 GC.heap_dump /tmp/heap",
    "unknown-tool --describe",
]


@pytest.mark.parametrize("command", READING)
def test_a_command_that_only_reads(command: str) -> None:
    assert reading([command]) == [command] and changing([command]) == []


@pytest.mark.parametrize("command", CHANGING)
def test_a_command_that_changes_a_system(command: str) -> None:
    assert changing([command]) == [command] and reading([command]) == []

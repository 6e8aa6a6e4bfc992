"""Public rule sets of the JMX exporter, rewritten: the same attributes under the same names, in rules of our own.

Facts about names were taken from these files (all Apache License 2.0): prometheus/jmx_exporter
`example_configs/kafka-2_0_0.yml`, `example_configs/kafka-0-8-2.yml`, `examples/kafka-kraft-3_0_0.yml`,
`example_configs/kafka_stream.yml`; strimzi/strimzi-kafka-operator `examples/metrics/kafka-metrics.yaml`;
bitnami/charts `bitnami/kafka/templates/metrics/jmx-configmap.yaml`; banzaicloud/koperator
`api/v1beta1/kafkacluster_types.go` (its first rules, and its later ones); confluentinc/jmx-monitoring-stacks
`shared-assets/jmx-exporter/kafka_broker.yml` and `kafka_streams.yml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml


@dataclass(frozen=True)
class Rule:
    """As in the exporter's configuration. No name: the name without rules."""

    pattern: str
    name: str | None = None
    kind: str = "UNTYPED"
    labels: Mapping[str, str] = field(default_factory=dict)
    value: str | None = None

    def to_yaml(self) -> dict[str, Any]:
        """As the exporter reads it."""
        rule: dict[str, Any] = {"pattern": self.pattern}
        if self.name:
            rule |= {"name": self.name, "type": self.kind, "labels": dict(self.labels)}
        return rule | ({"value": self.value} if self.value else {})


@dataclass(frozen=True)
class RuleSet:
    """Rules in their order, and what else the file sets."""

    rules: tuple[Rule, ...]
    lowercase_labels: bool = False
    excluded: tuple[str, ...] = ()
    """Object names that the exporter does not read, with `*` as any text."""

    def to_yaml(self, **more: Any) -> str:
        """The file."""
        settings: dict[str, Any] = {"lowercaseOutputLabelNames": True} if self.lowercase_labels else {}
        settings |= {"blacklistObjectNames": list(self.excluded)} if self.excluded else {}
        rules = {"lowercaseOutputName": True, "rules": [rule.to_yaml() for rule in self.rules]} if self.rules else {}
        return yaml.safe_dump(settings | rules | more)


ANY, NAMED = r"kafka.(\w+)<type=(.+)", ", name=(.+)"
PER_SECOND = r", name=(.+)PerSec\w*"


def _pairs(
    most: int, name: str, attribute: str, out: str, kind: str = "GAUGE", least: int = 0, **labels: str
) -> Iterator[Rule]:
    """One rule for each number of key properties after the name; `#` in `labels` is the group after them."""
    before = 2 + name.count("(")
    for pairs in range(most, least - 1, -1):
        keys = {f"${before + 2 * n + 1}": f"${before + 2 * n + 2}" for n in range(pairs)}
        more = {key: value.replace("#", f"${before + 2 * pairs + 1}") for key, value in labels.items()}
        pattern = f"{ANY}{name}{', (.+)=(.+)' * pairs}><>{attribute}"
        yield Rule(pattern, out.replace("#", f"${before + 2 * pairs + 1}"), kind, keys | more)


def _one(pattern: str, name: str, kind: str = "GAUGE", **labels: str) -> Rule:
    return Rule(pattern, name, kind, {key.replace("__", "-"): value for key, value in labels.items()})


_FETCHERS = (
    _one(
        "kafka.server<type=(.+), name=(.+), clientId=(.+), topic=(.+), partition=(.*)><>Value",
        "kafka_server_$1_$2",
        clientId="$3",
        topic="$4",
        partition="$5",
    ),
    _one(
        "kafka.server<type=(.+), name=(.+), clientId=(.+), brokerHost=(.+), brokerPort=(.+)><>Value",
        "kafka_server_$1_$2",
        clientId="$3",
        broker="$4:$5",
    ),
)
_COUNTERS = tuple(_pairs(2, PER_SECOND, "Count", "kafka_$1_$2_$3_total", "COUNTER"))
_QUOTAS = (
    _one("kafka.server<type=(.+), client-id=(.+)><>([a-z-]+)", "kafka_server_quota_$3", resource="$1", clientId="$2"),
    _one(
        "kafka.server<type=(.+), user=(.+), client-id=(.+)><>([a-z-]+)",
        "kafka_server_quota_$4",
        resource="$1",
        user="$2",
        clientId="$3",
    ),
)
_GAUGES = tuple(_pairs(2, NAMED, "Value", "kafka_$1_$2_$3"))
_SUMMARIES = (
    *_pairs(2, NAMED, "Count", "kafka_$1_$2_$3_count", "COUNTER"),
    *_pairs(2, NAMED, r"(\d+)thPercentile", "kafka_$1_$2_$3", quantile="0.#"),
)
_PERCENTS = (
    _one(r"kafka.(\w+)<type=(.+), name=(.+)Percent\w*><>MeanRate", "kafka_$1_$2_$3_percent"),
    *_pairs(1, r", name=(.+)Percent\w*", "Value", "kafka_$1_$2_$3_percent"),
)
_CONNECTIONS = _one(
    "kafka.server<type=(.+), clientSoftwareName=(.+), clientSoftwareVersion=(.+), listener=(.+),"
    " networkProcessor=(.+)><>connections",
    "kafka_server_$1_connections_software",
    clientSoftwareName="$2",
    clientSoftwareVersion="$3",
    listener="$4",
    networkProcessor="$5",
)
_LISTENERS = _one(
    "kafka.server<type=(.+), listener=(.+), networkProcessor=(.+)><>([a-z-]+)",
    "kafka_server_$1_$4",
    listener="$2",
    networkProcessor="$3",
)

EXAMPLE = RuleSet((*_FETCHERS, *_COUNTERS, *_QUOTAS, *_GAUGES, *_SUMMARIES))
KRAFT = RuleSet(
    (
        *_FETCHERS,
        _one("kafka.server<type=(.+)><>([a-z-]+)-total", "kafka_server_$1_$2_total", "COUNTER"),
        _one("kafka.server<type=(.+)><>([a-z-]+)", "kafka_server_$1_$2"),
        *_COUNTERS,
        _QUOTAS[1],
        _QUOTAS[0],
        _one("kafka.server<type=(.+), user=(.+)><>([a-z-]+)", "kafka_server_quota_$3", resource="$1", user="$2"),
        *_GAUGES,
        *_SUMMARIES,
        *_PERCENTS,
    )
)
STRIMZI = RuleSet((*_FETCHERS, _CONNECTIONS, _LISTENERS, *_PERCENTS, *_COUNTERS, *_GAUGES, *_SUMMARIES))


def _old(kind: str) -> RuleSet:
    """Of Kafka 0.8.2; `kind` is the type of what koperator's copy of it calls a counter."""
    logs = _one("kafka.log<type=Log, name=(.+), topic=(.+), partition=(.+)><>Value", "kafka_log_$1", "UNTYPED")
    return RuleSet(
        (
            Rule(logs.pattern, logs.name, "UNTYPED", {"topic": "$2", "partition": "$3"}),
            _one("kafka.controller<type=(.+), name=(.+)><>(Count|Value)", "kafka_controller_$1_$2", "UNTYPED"),
            _one("kafka.network<type=(.+), name=(.+)><>Value", "kafka_network_$1_$2", "UNTYPED"),
            _one(
                "kafka.network<type=(.+), name=(.+)PerSec, request=(.+)><>Count",
                "kafka_network_$1_$2_total",
                "UNTYPED",
                request="$3",
            ),
            _one(
                r"kafka.network<type=(.+), name=(\w+), request=(\w+)><>Count", "kafka_network_$1_$2", kind, request="$3"
            ),
            _one(r"kafka.network<type=(.+), name=(\w+)><>Count", "kafka_network_$1_$2", kind),
            _one(
                r"kafka.server<type=(.+), name=(.+)PerSec\w*, topic=(.+)><>Count",
                "kafka_server_$1_$2_total",
                kind,
                topic="$3",
            ),
            _one(r"kafka.server<type=(.+), name=(.+)PerSec\w*><>Count", "kafka_server_$1_$2_total", "COUNTER"),
            _one(
                "kafka.server<type=(.+), name=(.+), topic=(.+)><>(Count|Value)",
                "kafka_server_$1_$2",
                "COUNTER",
                topic="$3",
            ),
            _one(
                "kafka.server<type=(.+), name=(.+), clientId=(.+)><>(Count|Value)",
                "kafka_server_$1_$2",
                "UNTYPED",
                clientId="$3",
            ),
            _one("kafka.server<type=(.+), name=(.+)><>(Count|Value)", "kafka_server_$1_$2", "UNTYPED"),
            _one(rf"{ANY}{PER_SECOND}><>Count", "kafka_$1_$2_$3_total", kind),
            _one(rf"{ANY}{NAMED}><>(Count|Value)", "kafka_$1_$2_$3_$4", "COUNTER"),
            Rule(rf"{ANY}, name=(.+), (\w+)=(.+)><>(Count|Value)", "kafka_$1_$2_$3_$6", "UNTYPED", {"$4": "$5"}),
        )
    )


KAFKA_0_8_2, KOPERATOR_OLD = _old("UNTYPED"), _old("COUNTER")
_CATCH_ALL = r"kafka.(\w+)<type=([A-Za-z-]+)"
KOPERATOR = RuleSet(
    (
        *_FETCHERS,
        _CONNECTIONS,
        _LISTENERS,
        *(
            _one(rf"{ANY}, name=(.+)Percent\w*><>{rate}", f"kafka_$1_$2_$3_{rate.lower()}_percent")
            for rate in ("MeanRate", "OneMinuteRate", "FiveMinuteRate", "FifteenMinuteRate")
        ),
        *_PERCENTS[1:],
        *_pairs(3, PER_SECOND, "Count", "kafka_$1_$2_$3_total", "COUNTER"),
        *_QUOTAS,
        *_pairs(3, NAMED, "Value", "kafka_$1_$2_$3"),
        *_SUMMARIES,
        Rule(
            rf"{_CATCH_ALL}, (.+)=(.+), (.+)=(.+)><>([A-Za-z-]+)", "kafka_$1_$2_$7", "GAUGE", {"$3": "$4", "$5": "$6"}
        ),
        Rule(rf"{_CATCH_ALL}, (.+)=(.+)><>([A-Za-z-]+)", "kafka_$1_$2_$5", "GAUGE", {"$3": "$4"}),
        Rule(rf"{_CATCH_ALL}><>([A-Za-z-]+)", "kafka_$1_$2_$3", "GAUGE"),
        Rule("java.lang.+"),
        Rule("java.nio.+"),
    )
)
BITNAMI = RuleSet(
    (
        _one("kafka.controller<type=(KafkaController), name=(.+)><>(Value)", "kafka_controller_$1_$2_$3", "UNTYPED"),
        _one("kafka.controller<type=(ControllerStats), name=(.+)><>(Count)", "kafka_controller_$1_$2_$3", "UNTYPED"),
        _one(
            "kafka.network<type=(RequestMetrics), name=(.+), request=(.+)><>(Count|Value)",
            "kafka_network_$1_$2_$4",
            "UNTYPED",
            request="$3",
        ),
        _one(
            "kafka.network<type=(SocketServer|RequestChannel), name=(.+)><>(Count|Value)",
            "kafka_network_$1_$2_$3",
            "UNTYPED",
        ),
        _one(
            "kafka.server<type=(.+), name=(.+), topic=(.+)><>(Count|OneMinuteRate)",
            "kafka_server_$1_$2_$4",
            "UNTYPED",
            topic="$3",
        ),
        _one(
            "kafka.server<type=(ReplicaFetcherManager), name=(.+), clientId=(.+)><>(Value)",
            "kafka_server_$1_$2_$4",
            "UNTYPED",
            client_id="$3",
        ),
        _one(
            "kafka.server<type=(.+), name=(.+)><>(Count|Value|OneMinuteRate)", "kafka_server_$1_total_$2_$3", "UNTYPED"
        ),
        _one("kafka.server<type=(.+)><>(queue-size)", "kafka_server_$1_$2", "UNTYPED"),
        _one(r"java.lang<type=(.+), name=(.+)><(.+)>(\w+)", "java_lang_$1_$4_$3_$2", "UNTYPED"),
        _one(r"java.lang<type=(.+), name=(.+)><>(\w+)", "java_lang_$1_$3_$2", "UNTYPED"),
        Rule("java.lang<type=(.*)>"),
        _one(
            "kafka.log<type=(.+), name=(.+), topic=(.+), partition=(.+)><>Value",
            "kafka_log_$1_$2",
            "UNTYPED",
            topic="$3",
            partition="$4",
        ),
    )
)
PER_SEC_IN_NAME = RuleSet(
    (
        *_pairs(2, r", name=(.+PerSec\w*)", "Count", "kafka_$1_$2_$3_total", "COUNTER"),
        *_GAUGES,
        *_SUMMARIES,
    )
)
ATTRIBUTE_AND_TYPE = RuleSet((*_pairs(2, NAMED, "(Count|Value)", "kafka_$1_$2_$3_#", "COUNTER"),))
"""All counters: exporters since 1.0 append `_total` to what says already that it is a count."""
CONFLUENT = RuleSet(
    (
        _one(rf"{ANY}, name=(.+), topic=(.+), partition=(.+)><>Value", "kafka_$1_$2_$3", topic="$4", partition="$5"),
        *_FETCHERS,
        *_pairs(2, NAMED, "(Count|Value)", "kafka_$1_$2_$3", "UNTYPED", least=2),
        *_pairs(2, NAMED, r"(\d+)thPercentile", "kafka_$1_$2_$3", least=2, quantile="0.#"),
        *_pairs(1, NAMED, "(Count|Value)", "kafka_$1_$2_$3", "UNTYPED"),
        _one(
            "kafka.server<type=KafkaRequestHandlerPool, name=RequestHandlerAvgIdlePercent><>OneMinuteRate",
            "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total",
        ),
        _one(
            "kafka.server<type=socket-server-metrics, clientSoftwareName=(.+), clientSoftwareVersion=(.+),"
            " listener=(.+), networkProcessor=(.+)><>connections",
            "kafka_server_socketservermetrics_connections",
            client_software_name="$1",
            client_software_version="$2",
            listener="$3",
            network_processor="$4",
        ),
        *_pairs(1, NAMED, r"(\d+)thPercentile", "kafka_$1_$2_$3", quantile="0.#"),
        _one(
            "kafka.server<type=(Produce|Fetch|Request), user=(.+), client-id=(.+)><>(.+):",
            "kafka_server_$1_$4",
            user="$2",
            client__id="$3",
        ),
        _one(
            "kafka.server<type=(Produce|Fetch|Request), client-id=(.+)><>(.+):", "kafka_server_$1_$3", client__id="$2"
        ),
    ),
    lowercase_labels=True,
    excluded=("kafka.server:type=*", "kafka.server:type=app-info,id=*", "kafka.admin.client:*"),
)
BROKERS: Mapping[str, RuleSet] = {
    "without rules": RuleSet(()),
    "kafka-2_0_0.yml": EXAMPLE,
    "kafka-kraft-3_0_0.yml": KRAFT,
    "kafka-0-8-2.yml": KAFKA_0_8_2,
    "Strimzi": STRIMZI,
    "Bitnami": BITNAMI,
    "koperator": KOPERATOR,
    "early koperator": KOPERATOR_OLD,
    "PerSec in the name": PER_SEC_IN_NAME,
    "all counters": ATTRIBUTE_AND_TYPE,
    "Confluent": CONFLUENT,
}

STREAMS_EXAMPLE = RuleSet(
    tuple(
        _one(f"kafka.streams<type={kind},.*>{attribute}", name)
        for kind, attribute, name in (
            ("stream-processor-node-metrics", "process-rate", "kafka_streams_processor_node_process_rate"),
            ("stream-thread-metrics", "poll-latency-max", "kafka_streams_thread_poll_latency_max"),
            ("stream-metrics", "alive-stream-threads", "kafka_streams_alive_stream_threads"),
            ("stream-metrics", "failed-stream-threads", "kafka_streams_failed_stream_threads"),
            ("stream-state-metrics", "block-cache-usage", "kafka_streams_state_block_cache_usage"),
        )
    ),
    lowercase_labels=True,
)
_CLIENTS = r"kafka.(.+)<type=(.+)"
CONFLUENT_STREAMS = RuleSet(
    (
        Rule(
            r"kafka.streams<type=(.+), thread-id=(.+), task-id=(.+), (.+)=(.+)><>(.+):",
            "kafka_streams_$1_$6",
            "GAUGE",
            {"thread_id": "$2", "task_id": "$3", "$4": "$5"},
        ),
        _one(
            r"kafka.streams<type=(.+), thread-id=(.+), task-id=(.+)><>(.+):",
            "kafka_streams_$1_$4",
            thread_id="$2",
            task_id="$3",
        ),
        Rule(
            r"kafka.streams<type=stream-metrics, (.+)=(.+)><>(state|alive-stream-threads|version|application-id): (.+)",
            "kafka_streams_stream_metrics",
            "UNTYPED",
            {"$1": "$2", "$3": "$4"},
            "1",
        ),
        Rule(r"kafka.streams<type=(.+), (.+)=(.+)><>([^:]+)", "kafka_streams_$1_$4", "GAUGE", {"$2": "$3"}),
        *(
            Rule(
                f"{_CLIENTS}{', (.+)=(.+)' * pairs}><>(.+):",
                f"kafka_$1_$2_${2 * pairs + 3}",
                "GAUGE",
                {"client_type": "$1"} | {f"${2 * n + 3}": f"${2 * n + 4}" for n in range(pairs)},
            )
            for pairs in (3, 2, 1, 0)
        ),
    ),
    lowercase_labels=True,
    excluded=("kafka.consumer:type=*,id=*", "kafka.producer:type=*,id=*", "kafka.admin.client:*"),
)
APPLICATIONS: Mapping[str, RuleSet] = {
    "without rules": RuleSet(()),
    "kafka_stream.yml": STREAMS_EXAMPLE,
    "Confluent": CONFLUENT_STREAMS,
}


def carried(rules: RuleSet, bean: str, attributes: Sequence[str]) -> set[str]:
    """Which of a bean's attributes (`HeapMemoryUsage.used`) a rule set exposes; the exporter takes the first rule.

    A rule that puts further key properties into the name, with their values, exposes nothing: no name is known then.
    """
    if any(re.fullmatch(re.escape(name).replace(r"\*", "[^,]*"), bean) for name in rules.excluded):
        return set()
    if not rules.rules:
        return set(attributes)
    domain, _, keys = bean.partition(":")
    return {each for each in attributes if _is_exposed(rules, domain, keys.replace(",", ", "), each)}


def _is_exposed(rules: RuleSet, domain: str, keys: str, attribute: str) -> bool:
    item, _, part = attribute.partition(".")
    text = f"{domain}<{keys}><{item if part else ''}>{part or item}: 7"
    for rule in rules.rules:
        if found := re.search(rule.pattern, text):
            named = re.findall(r"\$(\d)", rule.name or "")
            return not any(", " in (found[int(number)] or "") for number in named)
    return False

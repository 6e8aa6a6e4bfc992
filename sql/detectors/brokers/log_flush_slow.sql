/*
title: Log flush latency (p95) above limit
resource_kind: broker
owner_role: platform
maturity: stable
reads: [metrics.broker_hourly, metrics.broker_topic_sample]
params:
  slow_ms: {default: 100, unit: ms, why: "what raw customer data tolerates; producers notice from 10 to 20 ms on"}
  patterns:
    default: "{}"
    unit: JSON
    why: "other limits by topic, as regex and ms, for example a higher one for mail; limits of one cluster belong under `exceptions`"
  min_flushes: {default: 30, unit: flushes, why: "fewer are not enough for a 95th percentile"}
key_metrics: [log_flush_p95_ms, limit_ms, strictest_topic, log_flush_mean_ms, flushes]
verdicts:
  slow:
    status: firing
    severity: warning
    message: "Log flush latency (p95) of broker {{ broker_id }} is {{ log_flush_p95_ms }}, above the limit of {{ limit_ms }}."
    details:
      - "{% if strictest_topic %}The limit is that of topic {{ strictest_topic }}, the strictest on this broker.{% endif %}"
      - "{% if log_flush_mean_ms %}The mean latency is {{ log_flush_mean_ms }} over {{ flushes | counted('flush', 'flushes') }}.{% endif %}"
    impact: "Producers with acks=all wait longer, and followers and consumers of this broker fall behind."
    actions:
      - "Move leaders to other brokers while flushes are slow."
      - "Check the broker's volume: burst balance, queue length, and throttled minutes."
      - "Check what else uses the volume: a reassignment, cold reads, or compaction."
    commands: ["kafka-log-dirs.sh --bootstrap-server {{ bootstrap_servers }} --describe --broker-list {{ broker_id }}"]
  within_limit:
    status: ok
    message: "Log flush latency (p95) of broker {{ broker_id }} is {{ log_flush_p95_ms }}, within the limit of {{ limit_ms }}."
  no_response: {status: unknown, message: "Not evaluated: broker {{ broker_id }} did not respond over JMX."}
  too_few_flushes:
    status: unknown
    message: "Not evaluated: broker {{ broker_id }} had {{ flushes | counted('flush', 'flushes') }}, a 95th percentile needs {{ min_flushes }}."
  not_reported: {status: unknown, message: "Not evaluated: broker {{ broker_id }} did not report its log flush latency."}
causes:
  broker_loses_replicas: [slow]
  leader_loses_followers: [slow]
  broker_delays_consumers: [slow]
caused_by:
  disk_slows_broker: [slow]
  cpu_slows_broker: [slow]
  broker_slows_flushes: [slow]
  reassignment_slows_brokers: [slow]
open_after_hours: 1
clear_after_hours: 2
description: |
  The 95th percentile of LogFlushRateAndTimeMs against the strictest limit of the topics with logs on the broker.
  Internal topics count only where a pattern matches them. At least min_flushes flushes are needed.
runbook: |
  ## Meaning
  Writing the log to disk takes longer than the strictest topic of this broker allows.
  ## Impact
  Produce requests with acks=all wait, followers drop out of the ISR, and consumers receive records late.
  ## Diagnosis
  1. Check the broker's volume: burst balance, queue length, throttled minutes.
  2. Check what else reads and writes there: a reassignment, a consumer that reads cold data, compaction.
  ## Mitigation
  1. Move leaders to other brokers while flushes are slow.
  2. Give the volume more IOPS or throughput, or stop the additional I/O.
limitations: |
  Kafka measures flushes per broker, not per topic, so the strictest limit applies to all of them. The percentile covers
  about five minutes before each sample, because the broker's histogram decays. By default Kafka leaves flushing to the
  operating system; brokers with few flushes are not evaluated.
*/
with topic_rule as (
  select
    key as pattern,
    value::double precision as ms
  from jsonb_each_text(cast(:patterns as jsonb))
),

hosted as (
  select
    cluster,
    endpoint,
    topic
  from metrics.broker_topic_sample
  where hour = :hour and log_bytes is not null
),

topic_limit as (
  select
    h.cluster,
    h.endpoint,
    h.topic,
    coalesce(min(r.ms), case when left(h.topic, 2) <> '__' then :slow_ms end) as ms
  from hosted as h
  left join topic_rule as r on h.topic ~ r.pattern
  group by h.cluster, h.endpoint, h.topic
),

strictest as (
  select distinct on (cluster, endpoint)
    cluster,
    endpoint,
    topic,
    ms
  from topic_limit
  where ms is not null
  order by cluster asc, endpoint asc, ms asc, topic asc
),

evaluated as (
  select
    b.*,
    s.topic as strictest_topic,
    coalesce(s.ms, :slow_ms) as limit_ms,
    b.log_flushes_per_second * b.covered_seconds as flushes
  from metrics.broker_hourly as b
  left join strictest as s on b.cluster = s.cluster and b.endpoint = s.endpoint
  where b.hour = :hour
)

select
  case
    when samples is null then 'no_response'
    when flushes < :min_flushes then 'too_few_flushes'
    when log_flush_p95_ms is null or flushes is null then 'not_reported'
    when log_flush_p95_ms > limit_ms then 'slow'
    else 'within_limit'
  end as reason,
  cluster,
  coalesce(broker_id::text, endpoint) as broker_id,
  endpoint,
  instance_id,
  log_flush_p95_ms,
  limit_ms,
  strictest_topic,
  log_flush_mean_ms,
  log_flush_p999_ms,
  flushes
from evaluated

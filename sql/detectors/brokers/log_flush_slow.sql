/*
title: Log flushes are slow
resource_kind: broker
owner_role: platform
maturity: stable
reads: [metrics.broker_hourly, metrics.broker_topic_sample]
params:
  slow_ms: {default: 100, unit: ms, why: "what raw customer data bears; 10 to 20 ms is where it begins to hurt"}
  patterns: {default: "{}", unit: JSON, why: "other limits by topic, as a regex and its ms, such as a larger one for mail; those of one cluster stand in `except`"}
  min_flushes: {default: 30, unit: flushes, why: "fewer don't make a 95th percentile"}
key_metrics: [log_flush_p95_ms, limit_ms, strictest_topic, log_flush_mean_ms, flushes]
verdicts:
  slow:
    status: firing
    severity: warning
    message: "5 % of the log flushes take longer than {{ log_flush_p95_ms }}; {{ limit_ms }} is the limit{% if strictest_topic %} for topic {{ strictest_topic }}{% endif %}."
    actions:
      - "Look at the volume of this broker first: its bucket, its queue. Move leaders away while it is slow."
    commands: ["kafka-log-dirs.sh --bootstrap-server {{ bootstrap_servers }} --describe --broker-list {{ broker_id }}"]
  quick: {status: ok, message: "95 % of the log flushes take at most {{ log_flush_p95_ms }}; {{ limit_ms }} is the limit."}
  silent: {status: unknown, message: "The broker did not answer over JMX."}
  few: {status: unknown, message: "Only {{ flushes }} flushes: too few to judge."}
  untold: {status: unknown, message: "The broker did not tell its flush times."}
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
runbook: |
  1. Look at the broker's volume: burst balance, queue, throttled minutes.
  2. Then at what else writes and reads there: a reassignment, a rogue consumer that reads cold data, compaction.
  3. Move leaders away from the broker while it is slow.
limitations: |
  Kafka measures flushes per broker, not per topic: the broker is judged by the strictest limit among the topics whose
  logs it holds (internal ones count only where a pattern names them). The percentile is of some five minutes before the
  samples, by the broker's own decaying histogram. Kafka flushes seldom by itself: with few flushes nothing is judged.
*/
with rule as (
  select
    key as pattern,
    value::double precision as ms
  from jsonb_each_text(cast(:patterns as jsonb))
),

held as (
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
  from held as h
  left join rule as r on h.topic ~ r.pattern
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

judged as (
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
    when samples is null then 'silent'
    when flushes < :min_flushes then 'few'
    when log_flush_p95_ms is null or flushes is null then 'untold'
    when log_flush_p95_ms > limit_ms then 'slow'
    else 'quick'
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
from judged

/*
title: Log flushes are slow
severity: warning
owner: platform
maturity: stable
reads: [metrics.broker_hourly, metrics.broker_topic_sample]
identity: [cluster, endpoint]
params:
  slow_ms: {default: 100, unit: ms, why: "what raw customer data bears; 10 to 20 ms is where it begins to hurt"}
  patterns: {default: "{}", unit: JSON, why: "other limits by topic, as a regex and its ms, such as a larger one for mail"}
  min_flushes: {default: 30, unit: flushes, why: "fewer don't make a 95th percentile"}
open_after_hours: 1
clear_after_hours: 2
follows_from: [ebs_volume_starving, consumer_rogue]
runbook: |
  1. Look at the broker's volume: burst balance, queue, throttled minutes.
  2. Then at what else writes and reads there: a reassignment, a rogue consumer that reads cold data, compaction.
  3. Move leaders away from the broker while it is slow.
blind_spots: |
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
  where hour = cast(:hour as timestamptz) and log_bytes is not null
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
  where b.hour = cast(:hour as timestamptz)
)

select
  format('%s broker %s', cluster, coalesce(broker_id::text, endpoint)) as resource,
  case
    when samples is null or log_flush_p95_ms is null or flushes is null or flushes < :min_flushes then 'skip'
    when log_flush_p95_ms > limit_ms then 'alarm'
    else 'ok'
  end as status,
  case
    when samples is null then 'The broker did not answer over JMX.'
    when flushes < :min_flushes then format('Only %s flushes: too few to judge.', round(flushes::numeric))
    when log_flush_p95_ms is null or flushes is null then 'The broker did not tell its flush times.'
    when log_flush_p95_ms > limit_ms
      then format(
        '5 %% of the log flushes take longer than %s ms; %s ms is the limit%s.',
        round(log_flush_p95_ms::numeric, 1), limit_ms,
        case when strictest_topic is not null then format(' for topic %s', strictest_topic) end
      )
    else format(
      '95 %% of the log flushes take at most %s ms; %s ms is the limit.', round(log_flush_p95_ms::numeric, 1), limit_ms
    )
  end as reason,
  cluster,
  endpoint,
  broker_id,
  instance_id,
  log_flush_p95_ms,
  log_flush_mean_ms,
  log_flush_p999_ms,
  limit_ms,
  strictest_topic,
  flushes,
  to_jsonb(array_remove(array[
    case when instance_id is not null then format('instance:%s', instance_id) end,
    case when broker_id is not null then format('broker:%s/%s', cluster, broker_id) end
  ], null)) as touches
from judged

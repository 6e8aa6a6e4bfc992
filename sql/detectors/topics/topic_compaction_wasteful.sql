/*
title: Ineffective compaction
resource_kind: cluster
owner_role: platform
maturity: stable
reads:
  - inventory.topic_hourly
  - metrics.topic_hourly
  - metrics.state_store_memory_hourly
  - metrics.jvm_app_hourly
params:
  held_over_live:
    default: 3
    unit: ratio
    why: "Kafka's defaults let a log hold twice its live records and one segment; a restore reads all of it"
  held_over_store:
    default: 2
    unit: ratio
    why: "RocksDB files also hold indexes and uncompacted records; a larger log is not explained by a low key estimate"
  days: {default: 7, unit: d, why: "one default segment.ms"}
  min_bytes: {default: 10737418240, unit: bytes, why: "10 GiB of one topic, all replicas: less does not justify a change"}
  explained:
    default: 1.5
    unit: ratio
    why: "a log above this multiple of what its settings allow has another cause: a slow cleaner or a wrong key estimate"
  advised_segment_seconds:
    default: 86400
    unit: seconds
    why: "one day, the setting published by MoEngage: each partition rolls one segment a day"
  advised_dirty_ratio:
    default: 0.1
    unit: ratio
    why: "the setting published by MoEngage: the cleaner rewrites a log when a tenth of it is dirty"
  most_shown: {default: 20, unit: topics, why: "the finding lists the largest; the totals include all"}
key_metrics: [saved_bytes, saved_usd_per_month, wasteful_topics, first_held_bytes, first_live_bytes]
verdicts:
  wasteful:
    status: firing
    severity: info
    message: >-
      {{ wasteful_topics | counted("changelog") }} of cluster {{ cluster }}
      {{ wasteful_topics | plural("holds", "hold") }} more than {{ held_over_live.value }} times
      {{ wasteful_topics | plural("its", "their") }} live records; compaction can free {{ saved_bytes }}.
    details:
      - "Largest: {{ first_topic }} holds {{ first_held_bytes }}, of which {{ first_live_bytes }} are live."
      - >-
        Topic {{ first_topic }} has segment.ms {{ first_segment_seconds }} and min.cleanable.dirty.ratio
        {{ first_cleanable }}; the cleaner cannot compact earlier.
      - "{% if saved_usd_per_month %}This storage costs {{ saved_usd_per_month }}.{% endif %}"
    impact: "State stores restore more slowly after each restart or rebalance, and brokers store outdated records."
    actions:
      - >-
        Lower segment.ms and min.cleanable.dirty.ratio of {{ first_topic }}.
        Repeat for each topic that the finding lists.
      - >-
        Monitor open files and the log cleaner: {{ wasteful_partitions | counted("partition") }} may each roll one more
        segment a day.
      - "If the store is a cache that a database can refill, use cleanup.policy=delete."
    commands:
      - >-
        kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --describe --entity-type topics
        --entity-name {{ first_topic }}
      - >-
        kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --entity-type topics
        --entity-name {{ first_topic }} --add-config
        segment.ms={{ first_advised_ms }},min.cleanable.dirty.ratio={{ advised_dirty_ratio.value }}
  effective:
    status: ok
    message: >-
      The settings of no large changelog in cluster {{ cluster }} let it hold {{ held_over_live.value }} times its live
      records.
  not_reported:
    status: unknown
    message: >-
      Not evaluated: size, keys, or record size of {{ unknown_topics }} of {{ large_topics }} large changelogs were not
      reported on each of {{ days.value }} days.
open_after_hours: 24
clear_after_hours: 24
description: |
  Evaluates changelogs of key-value stores with cleanup.policy=compact. Live bytes are the store's key count times the
  mean record size of `days`. A changelog counts when its log was larger than held_over_live times its live bytes, and
  larger than held_over_store times the store's files, on each day. Its settings must explain the size: the dirty share
  that min.cleanable.dirty.ratio allows, plus the inflow within segment.ms. The inflow within delete.retention.ms is
  subtracted, because it may be tombstones. The recommended settings must free at least min_bytes.
runbook: |
  ## Meaning
  The topic's settings keep the log cleaner from compacting: most records of the changelog are outdated.
  ## Impact
  A restore reads all of the log, so applications start more slowly. Brokers store the outdated records.
  ## Diagnosis
  1. Check the log size with kafka-log-dirs.sh.
  2. Compare with the store's metric estimate-num-keys.
  3. Check segment.ms and min.cleanable.dirty.ratio of the topic.
  ## Mitigation
  1. Lower both settings of the topic; the cleaner needs about an hour.
  2. For all changelogs of an application, set topic.segment.ms and topic.min.cleanable.dirty.ratio in Kafka Streams.
limitations: |
  Live keys are unknown for plain compacted topics and for in-memory stores. Windowed stores are bounded by time and are
  not evaluated. The key count is RocksDB's estimate. Records are assumed to be as large in the log as on the wire.
*/
with changelog as materialized (
  select
    t.cluster,
    t.topic,
    t.partitions,
    t.replication_factor,
    t.segment_bytes,
    s.*
  from inventory.topic_hourly as t
  cross join lateral (
    select
      (t.configs #>> '{segment.ms,value}')::double precision / 1000 as segment_seconds,
      (t.configs #>> '{delete.retention.ms,value}')::double precision / 1000 as tombstone_seconds,
      (t.configs #>> '{min.cleanable.dirty.ratio,value}')::double precision as dirty_ratio
  ) as s
  where t.hour = :hour and t.kind = 'changelog' and t.cleanup_policy = 'compact'
),

held as materialized (
  select * from public.changelogs_held(:hour, cast(:days as integer))
),

-- Changelogs that are large, or of unknown size.
large as materialized (
  select
    cluster,
    topic,
    (array_agg(held_bytes order by hour desc))[1] as held_bytes,
    (array_agg(keys order by hour desc))[1] as keys,
    bool_and(num_nulls(held_bytes, keys, sst_bytes) = 0) as is_known,
    min(held_bytes / sst_bytes) > :held_over_store as is_large_for_store
  from held
  group by cluster, topic
  having bool_and(coalesce(is_key_value, true)) and coalesce((array_agg(log_bytes order by hour desc))[1] >= :min_bytes, true)
),

traffic as (
  select
    l.cluster,
    l.topic,
    sum(t.bytes_in) / nullif(sum(t.messages_in), 0) as record_bytes,
    sum(t.bytes_in) / nullif(sum(t.covered_seconds), 0) as bytes_per_second
  from large as l
  cross join lateral generate_series(0, cast(:days as integer) * 24 - 1) as n (ago)
  inner join metrics.topic_hourly as t
    on
      :hour - make_interval(hours => n.ago) = t.hour and l.cluster = t.cluster and l.topic = t.topic
  where l.is_large_for_store
  group by l.cluster, l.topic
),

sized as (
  select
    c.*,
    l.held_bytes,
    l.keys,
    l.is_large_for_store,
    inflow.bytes_per_second as inflow_bytes_per_second,
    live.bytes as live_bytes,
    l.is_known and (
      not l.is_large_for_store
      or num_nulls(live.bytes, inflow.bytes_per_second, c.segment_seconds, c.tombstone_seconds, c.dirty_ratio, c.segment_bytes) = 0
    ) as is_known,
    l.held_bytes <= :explained * (
      live.bytes / (1 - least(c.dirty_ratio, 0.99)) + least(c.segment_bytes, inflow.bytes_per_second * c.segment_seconds)
    ) as is_explained,
    (l.held_bytes - live.bytes / (1 - :advised_dirty_ratio) - least(
      c.segment_bytes, inflow.bytes_per_second * :advised_segment_seconds
    )) * c.partitions * c.replication_factor as saved_bytes
  from large as l
  inner join changelog as c using (cluster, topic)
  left join traffic as t using (cluster, topic)
  cross join lateral (select t.bytes_per_second / c.partitions as bytes_per_second) as inflow
  cross join lateral (select l.keys * t.record_bytes as bytes) as live
),

-- The smallest ratio of log to live bytes over the days, by the live bytes of each day.
persistent as (
  select
    j.cluster,
    j.topic,
    min((h.held_bytes - j.inflow_bytes_per_second * j.tombstone_seconds) / (j.live_bytes * h.keys / j.keys)) as held_over_live
  from sized as j
  inner join held as h using (cluster, topic)
  where j.is_known and j.is_large_for_store and j.is_explained and j.saved_bytes >= :min_bytes
  group by j.cluster, j.topic
),

wasteful as (
  select
    j.*,
    w.held_over_live,
    row_number() over (partition by j.cluster order by j.saved_bytes desc, j.topic asc) as place
  from sized as j
  inner join persistent as w using (cluster, topic)
  where w.held_over_live > :held_over_live
),

shown as (
  select
    w.cluster,
    json_agg(
      json_build_object(
        'topic', w.topic, 'held_bytes', w.held_bytes * w.partitions * w.replication_factor,
        'live_bytes', w.live_bytes * w.partitions * w.replication_factor, 'held_over_live', w.held_over_live,
        'saved_bytes', w.saved_bytes, 'segment_seconds', w.segment_seconds, 'dirty_ratio', w.dirty_ratio
      ) order by w.place
    ) as worst_topics,
    jsonb_agg(public.resource_key('topic', w.cluster, w.topic) order by w.place) as affected
  from wasteful as w
  where w.place <= :most_shown
  group by w.cluster
),

summary as (
  select
    cluster,
    count(w.topic) as wasteful_topics,
    sum(w.partitions) as wasteful_partitions,
    sum(w.saved_bytes) as saved_bytes,
    count(j.topic) as large_topics,
    count(j.topic) filter (where not j.is_known) as unknown_topics
  from (select distinct cluster from changelog) as c
  left join sized as j using (cluster)
  left join wasteful as w using (cluster, topic)
  group by cluster
)

select
  case
    when s.wasteful_topics > 0 then 'wasteful'
    when s.unknown_topics > 0 then 'not_reported'
    else 'effective'
  end as reason,
  s.cluster,
  s.saved_bytes,
  s.saved_bytes / power(1024, 3) * price.usd_per_gib as saved_usd_per_month,
  s.wasteful_topics,
  s.wasteful_partitions,
  first.topic as first_topic,
  first.held_bytes as first_held_bytes,
  first.live_bytes as first_live_bytes,
  first.segment_seconds as first_segment_seconds,
  first.dirty_ratio as first_cleanable,
  cast(least(first.segment_seconds, :advised_segment_seconds) * 1000 as bigint) as first_advised_ms,
  s.large_topics,
  s.unknown_topics,
  shown.worst_topics,
  shown.affected
from summary as s
left join shown using (cluster)
left join inventory.broker_storage_price(:hour) as price using (cluster)
left join json_to_record(shown.worst_topics -> 0) as first (
  topic text, held_bytes double precision, live_bytes double precision,
  segment_seconds double precision, dirty_ratio double precision
) on true

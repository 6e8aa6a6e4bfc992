/*
title: Changelogs hold much more than their newest records
resource_kind: cluster
owner_role: platform
maturity: stable
reads: [inventory.topic_hourly, metrics.topic_hourly, metrics.state_store_memory_hourly, metrics.jvm_app_hourly]
params:
  held_over_live: {default: 3, unit: ratio, why: "Kafka's defaults let a log hold twice what is live, and a segment; a restore reads all of it"}
  held_over_store: {default: 2, unit: ratio, why: "RocksDB's own files hold indexes and what isn't compacted yet beside the live records; a log twice as large isn't filled by keys that the estimate missed"}
  days: {default: 7, unit: d, why: "segment.ms by default: a week of each, whatever the hour"}
  min_bytes: {default: 10737418240, unit: bytes, why: "10 GiB of one topic, all replicas: less is worth no change"}
  explained: {default: 1.5, unit: ratio, why: "what is more than its settings let it hold by half isn't theirs: a cleaner that doesn't keep up, or keys that are estimated wrongly"}
  advised_segment_seconds: {default: 86400, unit: seconds, why: "a day, as MoEngage set it: each partition begins a segment a day"}
  advised_dirty_ratio: {default: 0.1, unit: ratio, why: "as MoEngage set it: the cleaner writes a log anew for each tenth that is dirty"}
  most_shown: {default: 20, unit: topics, why: "the worst; the sums have all of them"}
key_metrics: [saved_bytes, saved_usd_per_month, wasteful_topics, first_held_bytes, first_live_bytes]
verdicts:
  wasteful:
    status: firing
    severity: info
    message: "{{ wasteful_topics | counted('changelog') }} {{ 'holds' if wasteful_topics == 1 else 'hold' }} more than {{ held_over_live.value }} times what the stores have keys for, for {{ days.value }} days, as settings keep the cleaner from compacting: {{ saved_bytes }}{% if saved_usd_per_month %}, {{ saved_usd_per_month }}{% endif %} could go, and restores read as much less. {{ first_topic }} holds {{ first_held_bytes }} of which {{ first_live_bytes }} live; segment.ms is {{ first_segment_seconds }}, min.cleanable.dirty.ratio {{ first_cleanable }}."
    actions:
      - "Let segments end earlier, and the cleaner begin earlier. That costs a segment for each partition and day until the cleaner joins them, {{ wasteful_partitions }} partitions in all, and the cleaner's reading and writing. Where the state is a cache that a database can fill again, cleanup.policy delete will do."
    commands: ["kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --entity-type topics --entity-name {{ first_topic }} --add-config segment.ms={{ first_advised_ms }},min.cleanable.dirty.ratio={{ advised_dirty_ratio.value }}"]
  fitting: {status: ok, message: "No changelog of size holds {{ held_over_live.value }} times what its store has keys for because of its settings."}
  unknown: {status: unknown, message: "Of {{ unknown_topics }} of {{ large_topics }} large changelogs the size, the keys or the records' size aren't known of each of {{ days.value }} days."}
open_after_hours: 24
clear_after_hours: 24
description: |
  Changelogs of key-value stores with cleanup.policy compact. Live is what the store has keys for, times the mean record
  of the days. Wasteful: on each of the days the log held more than held_over_live times that, and more than
  held_over_store times what the store itself takes on disk, and its settings account for it: the share that
  min.cleanable.dirty.ratio leaves, and what comes in within segment.ms. What came in within delete.retention.ms is left
  out, as it may be tombstones. Told where the advised settings would free min_bytes.
runbook: |
  1. Is the ratio right? kafka-log-dirs.sh tells the sizes; the store's estimate-num-keys its keys.
  2. Alter segment.ms and min.cleanable.dirty.ratio of the topic: the cleaner needs an hour or so.
  3. Streams sets them for all its changelogs by topic.segment.ms and topic.min.cleanable.dirty.ratio.
limitations: |
  Live keys of plain compacted topics are unknown, and of stores in memory; those of windowed stores are bounded by time
  and aren't judged. Keys are RocksDB's estimate. Records are taken as equally large on the wire and in the log.
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

-- Those that are large, or of which nobody knows how large they are.
large as materialized (
  select
    cluster,
    topic,
    (array_agg(held_bytes order by hour desc))[1] as held_bytes,
    (array_agg(keys order by hour desc))[1] as keys,
    bool_and(num_nulls(held_bytes, keys, sst_bytes) = 0) as is_known,
    min(held_bytes / sst_bytes) > :held_over_store as is_heavy
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
  where l.is_heavy
  group by l.cluster, l.topic
),

judged as (
  select
    c.*,
    l.held_bytes,
    l.keys,
    l.is_heavy,
    may.came_bytes,
    live.bytes as live_bytes,
    l.is_known and (
      not l.is_heavy
      or num_nulls(live.bytes, may.came_bytes, c.segment_seconds, c.tombstone_seconds, c.dirty_ratio, c.segment_bytes) = 0
    ) as is_known,
    l.held_bytes <= :explained * (
      live.bytes / (1 - least(c.dirty_ratio, 0.99)) + least(c.segment_bytes, may.came_bytes * c.segment_seconds)
    ) as is_explained,
    (l.held_bytes - live.bytes / (1 - :advised_dirty_ratio) - least(
      c.segment_bytes, may.came_bytes * :advised_segment_seconds
    )) * c.partitions * c.replication_factor as saved_bytes
  from large as l
  inner join changelog as c using (cluster, topic)
  left join traffic as t using (cluster, topic)
  cross join lateral (select t.bytes_per_second / c.partitions as came_bytes) as may
  cross join lateral (select l.keys * t.record_bytes as bytes) as live
),

-- The log on each of the days, by what was live then.
lasting as (
  select
    j.cluster,
    j.topic,
    min((h.held_bytes - j.came_bytes * j.tombstone_seconds) / (j.live_bytes * h.keys / j.keys)) as held_over_live
  from judged as j
  inner join held as h using (cluster, topic)
  where j.is_known and j.is_heavy and j.is_explained and j.saved_bytes >= :min_bytes
  group by j.cluster, j.topic
),

wasteful as (
  select
    j.*,
    w.held_over_live,
    row_number() over (partition by j.cluster order by j.saved_bytes desc, j.topic asc) as place
  from judged as j
  inner join lasting as w using (cluster, topic)
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
  left join judged as j using (cluster)
  left join wasteful as w using (cluster, topic)
  group by cluster
)

select
  case
    when s.wasteful_topics > 0 then 'wasteful'
    when s.unknown_topics > 0 then 'unknown'
    else 'fitting'
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

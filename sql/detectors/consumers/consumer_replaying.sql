/*
title: Consumer group replays cold data repeatedly
resource_kind: group
owner_role: platform
maturity: stable
reads: [metrics.consumer_group_hourly, metrics.consumer_partition_hourly, metrics.topic_hourly, metrics.volume_hourly,
  metrics.broker_hourly, metrics.node_hourly, metrics.replica_sample, inventory.volume_hourly,
  inventory.consumer_member_hourly]
params:
  cold_share:
    default: 0.2
    unit: ratio
    why: "of the disk reads of the cluster over these days; less slows no other consumer"
  times: {default: 3, unit: d, why: "a single replay is a repair"}
  days: {default: 7, unit: d, why: "a week"}
  quota_bytes_per_second:
    default: 10485760
    unit: bytes/s
    why: "10 MiB/s for all its clients from all brokers; less slows no other consumer"
  page_cache_share:
    default: 0.5
    unit: ratio
    why: "of a broker's memory; records older than that are read from disk"
key_metrics: [cold_bytes, disk_read_bytes, cold_days, cold_hours, others_lag_seconds]
verdicts:
  replays:
    status: firing
    severity: info
    message: >
      Group {{ group_id }} read {{ cold_bytes }} of cold data on {{ cold_days.value }} of {{ days.value }} days, of
      {{ disk_read_bytes }} read from broker disks.
    details:
      - "{% if worst_topic %}Most of it is topic {{ worst_topic }}.{% endif %}"
      - "{% if others_lag_seconds %}Other groups lagged by up to {{ others_lag_seconds }} in these hours.{% endif %}"
      - "{% if usd_per_month %}A copy of {{ worst_topic }} on similar volumes costs {{ usd_per_month }}.{% endif %}"
      - "{% if worst_topic_bytes %}Topic {{ worst_topic }} occupies {{ worst_topic_bytes }} (all replicas).{% endif %}"
      - "{% if not client_ids %}The client IDs of the group were not reported.{% endif %}"
    impact: "Page cache pollution slows the other consumers of this cluster during each replay."
    actions:
      - >
        {% if client_ids %}Throttle each client of the group to {{ broker_quota_bytes_per_second }} per broker, which is
        {{ quota_bytes_per_second }} in total.{% endif %}
      - "{% if not client_ids %}Ask the owner of the group for its client IDs, and set a quota for them.{% endif %}"
      - "Fix the cause: keep state between the runs of the job, so that it does not reread the topic."
      - "Prevent it: serve replays from a separate cluster or from tiered storage."
    commands:
      - &throttle "{% if (client_ids or []) | length > 0 %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --entity-type clients --entity-name {{ client_ids[0] }} --add-config consumer_byte_rate={{ broker_quota_bytes_per_second }}{% endif %}"
      - "{% if (client_ids or []) | length > 1 %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --entity-type clients --entity-name {{ client_ids[1] }} --add-config consumer_byte_rate={{ broker_quota_bytes_per_second }}{% endif %}"
      - "{% if (client_ids or []) | length > 2 %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --entity-type clients --entity-name {{ client_ids[2] }} --add-config consumer_byte_rate={{ broker_quota_bytes_per_second }}{% endif %}"
  infrequent:
    status: ok
    message: "Group {{ group_id }} read cold data on {{ cold_days.value }} of {{ days.value }} days, fewer than {{ times.value }}."
  low_volume:
    status: ok
    message: "Group {{ group_id }} read {{ cold_bytes }} of cold data, a small part of the disk reads."
  disk_reads_unknown:
    status: unknown
    message: "Not evaluated: CloudWatch did not report the disk reads of cluster {{ cluster }}."
  commits_unknown:
    status: unknown
    message: "Not evaluated: committed offsets of group {{ group_id }} were not reported in all hours."
open_after_hours: 3
clear_after_hours: 24
description: |
  Covers groups with a lag beyond the page cache of the brokers, and groups that reset their offsets to earlier
  positions. Fires if the bytes that they read from outside the page cache are cold_share or more of the disk reads of the
  cluster in `days` days, on at least `times` days. The bytes follow from committed offsets.
runbook: |
  ## Meaning
  A group regularly reads records that are no longer in the page cache.

  ## Impact
  The brokers read from disk, and recent records are evicted from the page cache.

  ## Diagnosis
  1. Ask the owner why the group rereads. A job without state of its own rereads everything in each run.

  ## Mitigation
  1. Set a quota: quota_bytes_per_second ÷ client IDs ÷ brokers. The group reads more slowly, and others keep their disk I/O.
  2. Use tiered storage (KIP-405): brokers then read old segments from S3 instead of their disks.
limitations: |
  Replays that the page cache serves are free and not detected. Groups that commit no offsets are not covered. Memory
  and volumes are those of the hour that is evaluated. Commands are listed for the first three client IDs.
*/
with behind_page_cache as materialized (
  select *
  from public.cold_hours(:hour, cast(:days as integer), :page_cache_share)
),

-- The lag is measured at the end of an hour, so records read in the next hour may be as old.
cold as materialized (
  select *
  from behind_page_cache
  union
  select
    hour + interval '1 hour',
    cluster,
    group_id,
    page_cache_seconds
  from behind_page_cache
  where hour < :hour
),

read as materialized (
  select
    c.hour,
    c.cluster,
    c.group_id,
    r.topic,
    r.cold_bytes,
    r.cold_bytes > 0 as is_cold,
    date_bin('1 day', c.hour, :hour + interval '1 hour') as day
  from cold as c
  cross join lateral public.group_cold_reads(c.cluster, c.group_id, c.hour, c.page_cache_seconds) as r
),

by_group as (
  select
    cluster,
    group_id,
    sum(cold_bytes) as cold_bytes,
    count(distinct hour) filter (where is_cold) as cold_hours,
    count(distinct day) filter (where is_cold) as cold_days,
    count(distinct day) filter (where is_cold is not false) as possible_days,
    bool_or(is_cold is null) as is_unknown,
    (array_agg(topic order by cold_bytes desc nulls last, topic asc))[1] as worst_topic
  from read
  group by cluster, group_id
),

others as (
  select
    r.cluster,
    r.group_id,
    max(o.lag_seconds_max) as lag_seconds
  from read as r
  inner join metrics.consumer_group_hourly as o
    on r.hour = o.hour and r.cluster = o.cluster and r.group_id <> o.group_id
  where r.is_cold
  group by r.cluster, r.group_id
),

-- The client IDs of its members; of a job that commits without members, those of its partitions.
client as (
  select
    cluster,
    group_id,
    jsonb_agg(distinct client_id) as client_ids
  from (
    select
      cluster,
      group_id,
      client_id
    from inventory.consumer_member_hourly
    where hour = :hour
    union all
    select
      cluster,
      group_id,
      client_id
    from metrics.consumer_partition_hourly
    where hour = :hour
  ) as known
  inner join by_group using (cluster, group_id)
  where client_id is not null
  group by cluster, group_id
),

disk as (
  select
    cluster,
    sum(read_bytes) as read_bytes
  from public.broker_reads_hourly(:hour, cast(:days as integer))
  group by cluster
)

select
  case
    when d.read_bytes is null then 'disk_reads_unknown'
    when g.cold_bytes is null then 'commits_unknown'
    when g.cold_days >= :times and g.cold_bytes >= :cold_share * d.read_bytes then 'replays'
    when g.possible_days < :times then 'infrequent'
    when g.is_unknown then 'commits_unknown'
    else 'low_volume'
  end as reason,
  g.cluster,
  g.group_id,
  g.cold_bytes,
  d.read_bytes as disk_read_bytes,
  g.cold_days,
  g.cold_hours,
  o.lag_seconds as others_lag_seconds,
  g.worst_topic,
  held.bytes as worst_topic_bytes,
  held.bytes / power(1024, 3) * price.usd_per_gib as usd_per_month,
  c.client_ids,
  cast(:quota_bytes_per_second / jsonb_array_length(c.client_ids) / b.brokers as bigint) as broker_quota_bytes_per_second
from by_group as g
left join disk as d using (cluster)
left join others as o using (cluster, group_id)
left join client as c using (cluster, group_id)
left join public.cluster_brokers as b on b.hour = :hour and g.cluster = b.cluster
left join inventory.broker_storage_price(:hour) as price on g.cluster = price.cluster
left join lateral (
  select sum(r.size_bytes) as bytes
  from metrics.replica_sample as r
  where r.hour = :hour and r.cluster = g.cluster and r.topic = g.worst_topic and not r.is_future
) as held on true

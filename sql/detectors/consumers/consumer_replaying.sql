/*
title: A group reads old records over and over
resource_kind: group
owner_role: platform
maturity: stable
reads: [metrics.consumer_group_hourly, metrics.consumer_partition_hourly, metrics.topic_hourly, metrics.volume_hourly, metrics.broker_hourly, metrics.node_hourly, metrics.replica_sample, inventory.volume_hourly, inventory.consumer_member_hourly]
params:
  cold_share: {default: 0.2, unit: ratio, why: "of what the cluster's disks read in the days: less disturbs nobody"}
  times: {default: 3, unit: d, why: "once is a repair"}
  days: {default: 7, unit: d, why: "a week"}
  quota_bytes_per_second: {default: 10485760, unit: bytes/s, why: "10 MiB/s of all its clients from all brokers; less slows nobody"}
  page_cache_share: {default: 0.5, unit: ratio, why: "of a broker's memory; a lag beyond it is read from the disk"}
key_metrics: [cold_bytes, disk_read_bytes, cold_days, cold_hours, others_lag_seconds]
verdicts:
  replays:
    status: firing
    severity: info
    message: "On {{ cold_days.value }} of {{ days.value }} days it read what memory no longer holds: {{ cold_bytes }} of the {{ disk_read_bytes }} that the brokers' disks read{% if worst_topic %}, most of {{ worst_topic }}{% endif %}.{% if others_lag_seconds %} Other groups lagged by up to {{ others_lag_seconds }} meanwhile.{% endif %}"
    actions:
      - "Replays belong where they disturb nobody: {% if worst_topic_bytes %}a cluster of its own (what {{ worst_topic }} keeps, {{ worst_topic_bytes }} with all replicas{% if usd_per_month %}, is {{ usd_per_month }} on volumes like these{% endif %}){% else %}a cluster of its own{% endif %}, tiered storage, or a quota, which costs nothing. {% if client_ids %}It holds for each client id on each broker by itself: {{ quota_bytes_per_second }} in all is {{ broker_quota_bytes_per_second }} each{% else %}Which client ids it has isn't known: ask its owner; a quota is for a client id{% endif %}."
    commands:
      - "{% for client in (client_ids or [])[:20] %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --entity-type clients --entity-name {{ client }} --add-config consumer_byte_rate={{ broker_quota_bytes_per_second }}{% if not loop.last %}; {% endif %}{% endfor %}"
  seldom: {status: ok, message: "It read old records on {{ cold_days.value }} of {{ days.value }} days: {{ times.value }} are no repair any more."}
  little: {status: ok, message: "The old records that it read, {{ cold_bytes }}, are little of what the disks read."}
  unknown: {status: unknown, message: "What it read of old records isn't known: {{ 'what the disks read' if gap == 'disks' else 'its commits' }} can't be had."}
open_after_hours: 3
clear_after_hours: 24
description: |
  Of groups that lag beyond the brokers' page cache, or jump back: bytes that no longer were in memory, by their commits,
  are cold_share or more of what the brokers' disks read in `days`, on at least `times` days.
runbook: |
  1. Who runs it, and why does it begin anew? A job that has no state of its own rereads for each run.
  2. A quota (commands: quota_bytes_per_second ÷ its client ids ÷ brokers) makes it slower and leaves the disks to the others.
  3. Tiered storage (KIP-405) reads old segments from S3, not from the brokers' disks.
limitations: |
  Replays that the page cache serves cost nothing and aren't seen. What a group without commits reads. Memory and
  volumes are those of the hour judged.
*/
with beyond as materialized (
  select *
  from public.cold_hours(:hour, cast(:days as integer), :page_cache_share)
),

-- How far a group is behind is told of an hour's end: most of what it reads in the next may be as old.
cold as materialized (
  select *
  from beyond
  union
  select
    hour + interval '1 hour',
    cluster,
    group_id,
    page_cache_seconds
  from beyond
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
    count(distinct day) filter (where is_cold is not false) as most_days,
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

-- Those of its members; of a job that commits without them, what is known of its partitions.
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
    when g.cold_bytes is null or d.read_bytes is null then 'unknown'
    when g.cold_days >= :times and g.cold_bytes >= :cold_share * d.read_bytes then 'replays'
    when g.most_days < :times then 'seldom'
    when g.is_unknown then 'unknown'
    else 'little'
  end as reason,
  g.cluster,
  g.group_id,
  g.cold_bytes,
  d.read_bytes as disk_read_bytes,
  g.cold_days,
  g.cold_hours,
  o.lag_seconds as others_lag_seconds,
  case when d.read_bytes is null then 'disks' else 'commits' end as gap,
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

/*
title: Brokers read from disks what memory should hold
resource_kind: cluster
owner_role: platform
maturity: stable
reads: [metrics.volume_hourly, metrics.broker_hourly, metrics.node_hourly, metrics.consumer_group_hourly, metrics.consumer_partition_hourly, metrics.topic_hourly, metrics.jvm_app_hourly, inventory.instance_hourly]
params:
  cold_ratio: {default: 0.1, unit: ratio, why: "of what is sent: readers at the end of the log read memory, so that more is memory that lacks"}
  floor_bytes_per_second: {default: 1048576, unit: bytes/s, why: "of all the cluster's disks: less is what machines read anyway"}
  days: {default: 7, unit: d, why: "a week"}
  times: {default: 3, unit: d, why: "of these; once is a repair"}
  least_hours: {default: 6, unit: h, why: "of a day without replays, restores, restarts and moves; fewer don't stand for it"}
  busy_ratio: {default: 0.6, unit: ratio, why: "a disk that is busier makes reads and flushes wait"}
  page_cache_share: {default: 0.5, unit: ratio, why: "of a broker's memory; a lag beyond it is read from the disk"}
  enough_heap_bytes: {default: 6442450944, unit: bytes, why: "6 GiB, Kafka's own advice for a broker: a larger heap takes memory from the page cache"}
  most_shown: {default: 10, unit: topics, why: "more are read by nobody"}
key_metrics: [cold_days, read_ratio, missing_bytes, page_cache_bytes, busiest_disk_ratio]
verdicts:
  busy:
    status: firing
    severity: warning
    message: &reason "On {{ cold_days.value }} of {{ known_days.value }} days the brokers read {{ read_ratio }} of what they sent from their disks, without a replay, a restore, a restart or a move{% if busiest_disk_ratio %}; the busiest disk works {{ busiest_disk_ratio }} of the time{% endif %}.{% if needed_bytes %} Their readers need {{ needed_bytes }} of page cache{% if page_cache_bytes %}, there are {{ page_cache_bytes }}{% endif %}.{% endif %}"
    actions:
      - &cure "{% if missing_bytes %}Give the brokers {{ missing_bytes }} more page cache: machines of {{ advised_memory_bytes }} each{% if machines %} instead of {{ machines[0].memory_bytes }} ({{ machines | map(attribute='instance_type') | join(', ') }}){% endif %}, or{% else %}Give the brokers more memory{% if machines %} than {{ machines[0].memory_bytes }} each ({{ machines | map(attribute='instance_type') | join(', ') }}){% endif %}, or{% endif %} their machines to themselves: heaps and other processes take it from the page cache.{% if heap_to_spare_bytes %} Heaps of {{ enough_heap_bytes }} free {{ heap_to_spare_bytes }} of it.{% endif %}{% if topics %} Most is needed for {{ topics[0].topic }}: its readers are {{ topics[0].lag_seconds }} behind.{% endif %}"
    commands: &commands
      - "free -b"
      - "ps aux --sort=-rss | head -n 10"
      - "{% if missing_bytes and instance_family %}aws ec2 describe-instance-types --region {{ region }} --filters 'Name=instance-type,Values={{ instance_family }}.*' --query 'sort_by(InstanceTypes[?MemoryInfo.SizeInMiB >= `{{ (advised_memory_bytes.value / 1048576) | round(0, 'ceil') | int }}`], &MemoryInfo.SizeInMiB)[].[InstanceType, MemoryInfo.SizeInMiB]' --output table{% endif %}"
  small: {status: firing, severity: info, message: *reason, actions: [*cure], commands: *commands}
  enough: {status: ok, message: "What its brokers read from disks is little of what they send: {{ read_ratio }} on its worst day."}
  unknown: {status: unknown, message: "{{ known_days.value }} of {{ days.value }} days are known, without replays, restores, restarts and moves; {{ times.value }} are needed. What the disks read comes from EBS' metrics, or from node exporter."}
open_after_hours: 24
clear_after_hours: 24
description: |
  Bytes read from the brokers' disks are more than cold_ratio of the bytes sent to consumers and followers, and more than
  floor_bytes_per_second, on at least `times` of `days`. Hours don't count in which a group read what the page cache no
  longer holds, a Streams application restored or started, or consumer_rogue was in alarm, nor the hours after those, in
  which they may have caught up; and none in which a broker started, was silent or had replicas that were moved or caught
  up. A warning where disks are busy.
runbook: |
  1. What else uses the machines' memory? A broker should have its machine for itself, and a heap of 6 GiB at most.
  2. Which topics need most (topics)? A reader that is always minutes behind needs all that came in meanwhile, in memory.
  3. Larger instances, or that reader to a cluster of its own or to tiered storage.
limitations: |
  Read-ahead, compaction and backups read too. Groups that commit nothing may replay unseen, where consumer_rogue doesn't
  judge. Disks that aren't EBS volumes are judged where node exporter runs; it counts what else the machine reads.
*/
with cold as (
  select
    cluster,
    hour
  from public.cold_hours(:hour, cast(:days as integer), :page_cache_share)
  union
  select
    cluster,
    hour
  from metrics.jvm_app_hourly
  where hour > :hour - make_interval(days => :days) and hour <= :hour
  and process_started_at > hour
  union
  select
    cluster,
    hour
  from public.processes_restoring(
    :hour - make_interval(days => :days) + interval '1 hour', :hour
  )
  union
  select
    identity ->> 'cluster' as cluster,
    hour
  from detect.firing_hours('consumer_rogue', :hour, cast(:days as integer))
),

-- How far a group or a restore is behind is told of an hour's end: in the next hour it may still have caught up. A rogue
-- that ends in the next hour isn't told any more.
upset as (
  select
    c.cluster,
    c.hour + later.hours as hour
  from cold as c
  cross join (values (interval '0 hours'), (interval '1 hour')) as later (hours)
),

day as (
  select
    r.cluster,
    sum(r.read_bytes) / nullif(sum(r.sent_bytes), 0) as read_ratio,
    avg(r.read_bytes) / 3600 as read_bytes_per_second,
    count(*) >= :least_hours as is_known
  from public.broker_reads_hourly(:hour, cast(:days as integer)) as r
  left join upset as u using (cluster, hour)
  where u.hour is null and not r.is_upset and r.read_bytes is not null and r.sent_bytes is not null
  group by r.cluster, date_bin('1 day', r.hour, :hour + interval '1 hour')
),

known as (
  select
    cluster,
    count(*) as days,
    count(*) filter (where read_ratio > :cold_ratio and read_bytes_per_second >= :floor_bytes_per_second)
      as cold_days,
    max(read_ratio) as read_ratio
  from day
  where is_known
  group by cluster
),

reader as (
  select
    p.cluster,
    p.topic,
    max(p.lag_seconds) as lag_seconds
  from metrics.consumer_partition_hourly as p
  inner join public.page_cache(:hour, :hour, :page_cache_share) as c using (cluster)
  where p.hour = :hour and p.lag_seconds <= c.seconds
  group by p.cluster, p.topic
),

topic as (
  select
    r.*,
    r.lag_seconds * t.bytes_in / t.covered_seconds * t.replication_factor as bytes
  from reader as r
  inner join public.topic_bytes as t using (cluster, topic)
  where t.hour = :hour and t.covered_seconds > 0
),

need as (
  select
    cluster,
    sum(bytes) as bytes,
    json_agg(json_build_object('topic', topic, 'lag_seconds', lag_seconds, 'bytes', bytes) order by place)
      filter (where place <= :most_shown) as topics
  from (
    select
      *,
      row_number() over (partition by cluster order by bytes desc nulls last, topic asc) as place
    from topic
  ) as placed
  group by cluster
),

machine as (
  select
    b.cluster,
    b.instance_id,
    i.region,
    i.instance_type,
    i.memory_bytes,
    max(b.heap_max_bytes) as heap_max_bytes,
    max(n.busiest_disk_ratio) as busy_ratio,
    -- Where nobody measures it, it is no more than what the heap leaves.
    coalesce(
      max(n.page_cache_bytes), least(:page_cache_share * i.memory_bytes, i.memory_bytes - max(b.heap_max_bytes))
    ) as page_cache_bytes
  from metrics.broker_hourly as b
  left join inventory.instance_hourly as i using (hour, instance_id)
  left join metrics.node_hourly as n using (hour, instance_id)
  where b.hour = :hour and b.instance_id is not null
  group by b.cluster, b.instance_id, i.region, i.instance_type, i.memory_bytes
),

of_machines as (
  select
    cluster,
    max(busy_ratio) as busy_ratio,
    avg(memory_bytes) as memory_bytes,
    count(*) as machines,
    case when count(page_cache_bytes) = count(*) then sum(page_cache_bytes) end as page_cache_bytes,
    sum(greatest(heap_max_bytes - :enough_heap_bytes, 0)) as heap_to_spare_bytes
  from machine
  group by cluster
),

kind as (
  select
    cluster,
    (array_agg(region order by machines desc, instance_type asc))[1] as region,
    (array_agg(split_part(instance_type, '.', 1) order by machines desc, instance_type asc))[1]
      as instance_family,
    jsonb_agg(
      jsonb_build_object(
        'instance_type', instance_type, 'machines', machines, 'memory_bytes', memory_bytes,
        'heap_max_bytes', heap_max_bytes
      ) order by machines desc, instance_type asc
    ) as machines
  from (
    select
      cluster,
      region,
      instance_type,
      memory_bytes,
      count(*) as machines,
      max(heap_max_bytes) as heap_max_bytes
    from machine
    where instance_type is not null
    group by cluster, region, instance_type, memory_bytes
  ) as each
  group by cluster
)

select
  case
    when k.cold_days >= :times and m.busy_ratio > :busy_ratio then 'busy'
    when k.cold_days >= :times then 'small'
    when k.days >= :times then 'enough'
    else 'unknown'
  end as reason,
  cluster,
  k.cold_days,
  coalesce(k.days, 0) as known_days,
  k.read_ratio,
  n.bytes as needed_bytes,
  m.page_cache_bytes,
  l.missing_bytes,
  m.memory_bytes + l.missing_bytes / m.machines as advised_memory_bytes,
  nullif(m.heap_to_spare_bytes, 0) as heap_to_spare_bytes,
  m.busy_ratio as busiest_disk_ratio,
  t.machines,
  t.instance_family,
  t.region,
  n.topics
from (select distinct cluster from metrics.broker_hourly where hour = :hour) as c
left join known as k using (cluster)
left join need as n using (cluster)
left join of_machines as m using (cluster)
left join kind as t using (cluster)
cross join lateral (
  select case when n.bytes > m.page_cache_bytes then n.bytes - m.page_cache_bytes end as missing_bytes
) as l

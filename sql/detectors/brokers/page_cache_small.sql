/*
title: Page cache too small for the working set
resource_kind: cluster
owner_role: platform
maturity: stable
reads: [metrics.volume_hourly, metrics.broker_hourly, metrics.node_hourly, metrics.consumer_group_hourly, metrics.consumer_partition_hourly, metrics.topic_hourly, metrics.jvm_app_hourly, inventory.instance_hourly]
params:
  cold_ratio: {default: 0.1, unit: ratio, why: "of bytes sent: consumers at the log end read from memory, so a higher share means too little memory"}
  floor_bytes_per_second: {default: 1048576, unit: bytes/s, why: "of all disks of the cluster: hosts read less than this anyway"}
  days: {default: 7, unit: d, why: "a week"}
  times: {default: 3, unit: d, why: "of these days; a single one is a repair"}
  least_hours: {default: 6, unit: h, why: "of a day without replays, restores, restarts, and moves; fewer do not represent it"}
  busy_ratio: {default: 0.6, unit: ratio, why: "a busier disk makes reads and flushes wait"}
  page_cache_share: {default: 0.5, unit: ratio, why: "of a broker's memory; consumer lag beyond it is read from disk"}
  enough_heap_bytes: {default: 6442450944, unit: bytes, why: "6 GiB, Kafka's own recommendation for a broker: a larger heap takes memory from the page cache"}
  most_shown: {default: 10, unit: topics, why: "longer lists are not read"}
key_metrics: [cold_days, read_ratio, missing_bytes, page_cache_bytes, busiest_disk_ratio]
verdicts:
  disks_busy:
    status: firing
    severity: warning
    message: &message "Brokers of cluster {{ cluster }} read {{ read_ratio }} of the bytes they send from disk, on {{ cold_days.value }} of {{ known_days.value }} days."
    details: &details
      - "Hours with replays, restores, restarts, and moves are excluded."
      - "{% if busiest_disk_ratio %}The busiest disk is busy {{ busiest_disk_ratio }} of the time.{% endif %}"
      - "{% if needed_bytes %}Consumers need {{ needed_bytes }} of page cache.{% endif %}"
      - "{% if page_cache_bytes %}The brokers have {{ page_cache_bytes }} of page cache.{% endif %}"
      - "{% if topics %}Topic {{ topics[0].topic }} needs most: its consumers are {{ topics[0].lag_seconds }} behind.{% endif %}"
      - "{% if instances %}Current instance types: {{ instances | listed('instance_type', 3) }}.{% endif %}"
    impact: "Cold reads compete with log flushes for disk I/O and slow consumers and producers."
    actions: &actions
      - "Remove other processes from the broker hosts; they take memory from the page cache."
      - "{% if heap_to_spare_bytes %}Reduce broker heaps to {{ enough_heap_bytes }} to free {{ heap_to_spare_bytes }} for the page cache.{% endif %}"
      - "{% if missing_bytes %}Add {{ missing_bytes }} of page cache: use instances with {{ advised_memory_bytes }} of memory each.{% endif %}"
      - "{% if not missing_bytes %}Use instances with more memory.{% endif %}"
    commands: &commands
      - "free -b"
      - "ps aux --sort=-rss | head -n 10"
      - "{% if missing_bytes and instance_family %}aws ec2 describe-instance-types --region {{ region }} --filters 'Name=instance-type,Values={{ instance_family }}.*' --query 'sort_by(InstanceTypes[?MemoryInfo.SizeInMiB >= `{{ (advised_memory_bytes.value / 1048576) | round(0, 'ceil') | int }}`], &MemoryInfo.SizeInMiB)[].[InstanceType, MemoryInfo.SizeInMiB]' --output table{% endif %}"
  too_small:
    status: firing
    severity: info
    message: *message
    details: *details
    impact: "Disk reads use I/O that log flushes will need when traffic grows."
    actions: *actions
    commands: *commands
  sufficient: {status: ok, message: "Brokers of cluster {{ cluster }} read at most {{ read_ratio }} of the bytes they send from disk on any day."}
  insufficient_data:
    status: unknown
    message: "Not evaluated: {{ known_days.value }} of {{ days.value }} days have disk reads from EBS or node exporter, {{ times.value }} needed."
open_after_hours: 24
clear_after_hours: 24
description: |
  Bytes read from the brokers' disks exceed cold_ratio of the bytes sent to consumers and followers, and
  floor_bytes_per_second, on at least `times` of `days`. Excluded are hours in which a group read beyond the page cache, a
  Streams application restored or started, or consumer_rogue was firing, and the hour after each. Also excluded are hours
  in which a broker started, did not respond, or had replicas that were moved or catching up. A warning if disks are busy.
runbook: |
  ## Meaning
  The recently written data that consumers read do not fit into the page cache of the brokers.
  ## Impact
  Reads go to disk, compete with log flushes, and raise latency for all clients.
  ## Diagnosis
  1. Check what else uses memory on the hosts; a broker should have its host to itself and a heap of at most 6 GiB.
  2. Check which topics need most (metric `topics`): a consumer that is minutes behind needs all data since then in memory.
  ## Mitigation
  1. Free memory on the hosts, or use larger instances.
  2. Move the lagging consumer to a cluster of its own or to tiered storage.
limitations: |
  Read-ahead, compaction, and backups read from disk too. Consumers that do not commit offsets may replay undetected where
  consumer_rogue does not evaluate. Disks other than EBS volumes need
  node exporter, which also counts other reads of the host. The memory needed is an estimate from consumer lag in the last hour.
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

-- The lag of a group or a restore is that of the end of an hour: the next hour may still contain cold reads of it.
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

broker_instance as (
  select
    b.cluster,
    b.instance_id,
    i.region,
    i.instance_type,
    i.memory_bytes,
    max(b.heap_max_bytes) as heap_max_bytes,
    max(n.busiest_disk_ratio) as busy_ratio,
    -- Where page cache is not measured, the heap limits it.
    coalesce(
      max(n.page_cache_bytes), least(:page_cache_share * i.memory_bytes, i.memory_bytes - max(b.heap_max_bytes))
    ) as page_cache_bytes
  from metrics.broker_hourly as b
  left join inventory.instance_hourly as i using (hour, instance_id)
  left join metrics.node_hourly as n using (hour, instance_id)
  where b.hour = :hour and b.instance_id is not null
  group by b.cluster, b.instance_id, i.region, i.instance_type, i.memory_bytes
),

of_instances as (
  select
    cluster,
    max(busy_ratio) as busy_ratio,
    avg(memory_bytes) as memory_bytes,
    count(*) as instances,
    case when count(page_cache_bytes) = count(*) then sum(page_cache_bytes) end as page_cache_bytes,
    sum(greatest(heap_max_bytes - :enough_heap_bytes, 0)) as heap_to_spare_bytes
  from broker_instance
  group by cluster
),

kind as (
  select
    cluster,
    (array_agg(region order by instances desc, instance_type asc))[1] as region,
    (array_agg(split_part(instance_type, '.', 1) order by instances desc, instance_type asc))[1]
      as instance_family,
    jsonb_agg(
      jsonb_build_object(
        'instance_type', instance_type, 'instances', instances, 'memory_bytes', memory_bytes,
        'heap_max_bytes', heap_max_bytes
      ) order by instances desc, instance_type asc
    ) as instances
  from (
    select
      cluster,
      region,
      instance_type,
      memory_bytes,
      count(*) as instances,
      max(heap_max_bytes) as heap_max_bytes
    from broker_instance
    where instance_type is not null
    group by cluster, region, instance_type, memory_bytes
  ) as each
  group by cluster
)

select
  case
    when k.cold_days >= :times and m.busy_ratio > :busy_ratio then 'disks_busy'
    when k.cold_days >= :times then 'too_small'
    when k.days >= :times then 'sufficient'
    else 'insufficient_data'
  end as reason,
  cluster,
  k.cold_days,
  coalesce(k.days, 0) as known_days,
  k.read_ratio,
  n.bytes as needed_bytes,
  m.page_cache_bytes,
  l.missing_bytes,
  m.memory_bytes + l.missing_bytes / m.instances as advised_memory_bytes,
  nullif(m.heap_to_spare_bytes, 0) as heap_to_spare_bytes,
  m.busy_ratio as busiest_disk_ratio,
  t.instances,
  t.instance_family,
  t.region,
  n.topics
from (select distinct cluster from metrics.broker_hourly where hour = :hour) as c
left join known as k using (cluster)
left join need as n using (cluster)
left join of_instances as m using (cluster)
left join kind as t using (cluster)
cross join lateral (
  select case when n.bytes > m.page_cache_bytes then n.bytes - m.page_cache_bytes end as missing_bytes
) as l

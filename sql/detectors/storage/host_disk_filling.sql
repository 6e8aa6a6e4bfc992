/*
title: Host disk filling up
resource_kind: host
owner_role: platform
maturity: stable
reads:
  - metrics.node_hourly
  - metrics.file_system_hourly
  - metrics.jvm_app_hourly
  - metrics.state_store_memory_hourly
  - metrics.log_dir_hourly
  - metrics.broker_hourly
  - inventory.topic_hourly
params:
  left_out: {default: "^/(boot|efi)(/|$)", unit: regex, why: "boot file systems change with system updates only"}
  warning_hours: {default: 72, unit: h, why: "a weekend"}
  critical_hours: {default: 12, unit: h, why: "a night"}
  high_ratio: {default: 0.85, unit: ratio, why: "a process needs free space to take over the stores of a failed one"}
  high_hours: {default: 720, unit: h, why: "above high_ratio, growth that fills the disk within a month counts; slower growth is noise"}
  beyond_ratio: {default: 0.02, unit: ratio of the disk, why: "peaks of compaction cycles differ by as much"}
  critical_ratio:
    default: 0.95
    unit: ratio
    why: "RocksDB writes a compacted file before it deletes its inputs, and needs space for both"
  peak_hours: {default: 3, unit: h, why: "a compaction frees its space within minutes, that of a large store within two hours"}
  least_history: {default: 72, unit: h, why: "with less history, a one-day burst looks like growth"}
  small_bytes: {default: 21474836480, unit: bytes, why: "20 GiB: a new host's system and logs fill a disk of this size, then stop"}
  room_days: {default: 14, unit: d, why: "added space should last two weeks"}
  target_ratio: {default: 0.7, unit: ratio, why: "leaves a third of the disk for compactions and failovers"}
  stores_share: {default: 0.5, unit: ratio, why: "of the disk's growth; from this share on, state stores are the cause"}
key_metrics: [available_bytes, size_bytes, growth_bytes_per_second, hours_to_full, stores]
verdicts:
  nearly_full:
    status: firing
    severity: critical
    message: >-
      File system {{ mountpoint }} of {{ name }} is {{ used_ratio }} full (limit {{ critical_ratio }}):
      {{ available_bytes }} of {{ size_bytes }} are available.
    details: &details
      - "{% if growth_bytes_per_second > 0 %}Used space grows by {{ growth_bytes_per_second }}.{% endif %}"
      - >-
        {% if is_store_growth %}State stores account for the growth, mostly {{ stores[0].store }} of
        {{ stores[0].application_id }}.{% endif %}
      - >-
        {% if stores and not is_store_growth %}State stores grow by {{ stores_grown_bytes }} a day, which does not explain
        the growth of the disk.{% endif %}
      - "{% if not stores %}No state store on this host grows.{% endif %}"
      - "{% if task_bytes %}A task of a state store takes {{ task_bytes }} on this host on average.{% endif %}"
      - >-
        {% if failover_bytes %}If {{ failover_host }} is lost and its stores without standbys move evenly, this disk
        receives at least {{ failover_bytes }}: {{ failover_ratio }} full.{% endif %}
      - "{% if added_usd_per_month %}The recommended space costs {{ added_usd_per_month }} at list price.{% endif %}"
    impact: &impact >-
      A full disk stops RocksDB flushes and compactions: stream threads on this host fail, and their tasks restore
      elsewhere.
    actions: &actions
      - "{% if not is_store_growth %}Delete old logs and heap dumps on {{ mountpoint }}.{% endif %}"
      - >-
        {% if to_add_bytes %}Add {{ to_add_bytes }} to {{ volume_id or 'the disk' }}: enough for {{ room_days }} of growth
        at {{ target_ratio }} used.{% endif %}
      - >-
        {% if is_store_growth %}Limit what store {{ stores[0].store }} keeps (retention, windows, tombstones), or spread
        its tasks over more hosts.{% endif %}
      - "{% if not is_store_growth %}Limit the size of logs with log rotation.{% endif %}"
    commands: &commands
      - "du -xh --max-depth=3 {{ mountpoint }} | sort -h | tail -n 20"
      - >-
        {% if volume_id %}aws ec2 modify-volume --region {{ region }} --volume-id {{ volume_id }}
        --size {{ new_size_gib.value }}{% endif %}
      - "{% if volume_id and fstype == 'xfs' %}xfs_growfs {{ mountpoint }}{% endif %}"
      - "{% if volume_id and fstype == 'ext4' %}resize2fs {{ device }}{% endif %}"
  full_soon:
    status: firing
    severity: critical
    message: &forecast >-
      File system {{ mountpoint }} of {{ name }} will be full in {{ hours_to_full }} ({{ full_at }}):
      {{ available_bytes }} of {{ size_bytes }} are available.
    details: *details
    impact: *impact
    actions: *actions
    commands: *commands
  filling:
    status: firing
    severity: warning
    message: *forecast
    details: *details
    impact: *impact
    actions: *actions
    commands: *commands
  high:
    status: firing
    severity: warning
    message: >-
      File system {{ mountpoint }} of {{ name }} is {{ used_ratio }} full (limit {{ high_ratio }}) and grows;
      the remaining {{ available_bytes }} last {{ hours_to_full }}.
    details: *details
    impact: *impact
    actions: *actions
    commands: *commands
  rising:
    status: firing
    severity: warning
    message: >-
      File system {{ mountpoint }} of {{ name }} is {{ used_ratio }} full, a 4-week high; at the growth of the last 24 h
      it is full in {{ hours_to_full }}.
    details: *details
    impact: *impact
    actions: *actions
    commands: *commands
  growth_paused:
    status: firing
    severity: warning
    message: >-
      File system {{ mountpoint }} of {{ name }} is {{ used_ratio }} full; growth has paused, but at the rate of the last
      7 days it is full in {{ hours_to_full }}.
    details: *details
    impact: *impact
    actions: *actions
    commands: *commands
  enough_space:
    status: ok
    message: >-
      File system {{ mountpoint }} of {{ name }} is {{ used_ratio }} full
      {%- if hours_to_full %}; at its growth rate it lasts {{ hours_to_full }}{% else %} and will not fill soon{% endif %}.
  broker_only: {status: ok, message: "The file systems of {{ name }} are log directories of its broker (see disk_filling)."}
  short_history:
    status: unknown
    message: >-
      Not evaluated: file system {{ mountpoint }} of {{ name }} ({{ used_ratio }} full) has too little history for a
      growth rate: {{ known_hours }} of the last 7 days.
  not_reported:
    status: unknown
    message: "Not evaluated: node exporter on {{ name }} did not report the available space of {{ mountpoint }}."
  no_response:
    status: unknown
    message: "Not evaluated: node exporter on {{ name }} did not respond, or reported no file system."
open_after_hours: 1
clear_after_hours: 3
description: |
  The worst file system of a host counts, except boot and read-only file systems and those as large as a log directory of
  the host's broker (disk_filling covers them). Available space is the peak usage of the last peak_hours, so that
  compactions do not count.

  As in disk_filling, growth is the smaller of two Theil-Sen slopes: over 7 days, and over 24 hours with the daily rhythm
  removed. Above high_ratio, the growth of the last day alone is enough if usage is at a 4-week high, and so is the growth
  of most of the last 7 days. The growth of the last day alone is ignored if a process on the host restored state in it.
runbook: |
  ## Meaning
  A file system of this host is nearly full, or will be full soon at its current growth.

  ## Impact
  RocksDB cannot flush or compact on a full disk. Stream threads fail, and their tasks restore on other hosts.

  ## Diagnosis
  1. Find what grew: the finding lists state stores; otherwise use du.
  2. Find deleted files that are still open: `lsof +L1`.
  3. Find state directories of applications that moved away. Kafka Streams removes only those of its own tasks.

  ## Mitigation
  1. Delete logs, heap dumps, and abandoned state directories; never the state directory of a running process.
  2. Grow the volume, then the partition, if there is one (growpart), then the file system. EBS volumes grow while in use,
     but only once in six hours.
limitations: |
  The volume of a file system is found by its size, so no volume is named if two of the host are equally large. A file
  system as large as a log directory of the host's broker is never evaluated here. State stores are counted for the whole
  host, on whichever file system they lie. A restore that does not fit is detected only when the disk is nearly full. No
  growth is computed if one day's growth cannot fill the disk within warning_hours. Hosts without node exporter are not
  covered. Bytes from a lost host count SST files only, and assume that remaining processes take an equal number of its
  tasks.
*/
with file_system as materialized (
  select
    f.*,
    d.usable_bytes,
    f.size_bytes - d.usable_bytes as used_bytes,
    1 - d.usable_bytes / f.size_bytes as used_ratio,
    d.known_hours_of_day,
    d.range_bytes,
    coalesce(f.instance_id, substring(f.endpoint from '://([^/:]+)'), f.endpoint) as host
  from metrics.file_system_hourly as f
  inner join (
    select
      cluster,
      endpoint,
      mountpoint,
      max(available_bytes) filter (where hour > :hour - make_interval(hours => :peak_hours))
        as usable_bytes,
      count(available_bytes) as known_hours_of_day,
      max(available_bytes) - min(available_bytes) as range_bytes
    from metrics.file_system_hourly
    where hour > :hour - interval '24 hours' and hour <= :hour
    group by cluster, endpoint, mountpoint
  ) as d using (cluster, endpoint, mountpoint)
  where f.hour = :hour and f.read_only is not true and f.mountpoint !~ :left_out
),

-- Sizes of the broker's log directories, as reported in the last 24 hours.
log_dir as (
  select distinct
    coalesce(b.instance_id, substring(b.endpoint from '://([^/:]+)')) as host,
    d.total_bytes
  from metrics.log_dir_hourly as d
  inner join metrics.broker_hourly as b using (hour, cluster, broker_id)
  where d.hour > :hour - interval '24 hours' and d.hour <= :hour
),

process as materialized (
  select
    p.*,
    r.endpoint is not null as has_restored
  from public.hosted_processes(:hour) as p
  left join (
    select distinct cluster, endpoint
    from public.processes_restoring(:hour - interval '23 hours', :hour)
  ) as r using (cluster, endpoint)
),

-- Computing growth is expensive. It is skipped where usage moved too little within the day to fill the disk within
-- warning_hours.
evaluated as (
  select
    f.*,
    coalesce(g.known_hours, f.known_hours_of_day) as known_hours,
    g.week_growth,
    g.day_growth,
    g.growth_per_hour,
    g.growth_by_days,
    g.hours_to_full,
    g.hours_to_full_by_day,
    g.hours_to_full_by_days,
    g.is_highest,
    g.is_beyond,
    g.known_hours is null as is_flat
  from file_system as f
  left join lateral public.disk_growth(
    'file_system', f.cluster, f.endpoint, f.mountpoint, f.hour, f.used_bytes, f.usable_bytes,
    f.used_ratio > :high_ratio, :least_history, :beyond_ratio * f.size_bytes
  ) as g on
    f.used_ratio > :high_ratio or f.range_bytes >= f.usable_bytes / :warning_hours or f.known_hours_of_day < 12
  where not exists (select from log_dir as d where d.host = f.host and d.total_bytes = f.size_bytes)
),

verdict as (
  select
    *,
    case
      when used_ratio is null then 'not_reported'
      when known_hours < :least_history and size_bytes < :small_bytes and not is_flat then 'short_history'
      when used_ratio > :critical_ratio then 'nearly_full'
      when hours_to_full <= :critical_hours then 'full_soon'
      when hours_to_full <= :warning_hours then 'filling'
      when is_highest and hours_to_full <= :high_hours then 'high'
      when
        is_beyond and hours_to_full_by_day <= :warning_hours
        and not exists (select from process as p where p.host = evaluated.host and p.has_restored)
        then 'rising'
      when hours_to_full_by_days <= :warning_hours then 'growth_paused'
      when is_flat then 'enough_space'
      when known_hours < :least_history or growth_per_hour is null then 'short_history'
      else 'enough_space'
    end as reason
  from evaluated
),

worst as (
  select distinct on (cluster, endpoint)
    v.*,
    s.growth,
    nullif(
      greatest((v.used_bytes + greatest(s.growth, 0) * 24 * :room_days) / :target_ratio - v.size_bytes, 0), 0
    ) as to_add_bytes,
    case v.reason
      when 'rising' then v.hours_to_full_by_day
      when 'growth_paused' then v.hours_to_full_by_days
      else v.hours_to_full
    end as hours_left
  from verdict as v
  cross join lateral (
    select case v.reason when 'growth_paused' then v.growth_by_days else v.growth_per_hour end as growth
  ) as s
  order by
    cluster asc, endpoint asc,
    array_position(
      array[
        'nearly_full', 'full_soon', 'filling', 'rising', 'growth_paused', 'high', 'not_reported', 'short_history',
        'enough_space'
      ],
      reason
    ) asc,
    hours_to_full asc nulls last, used_ratio desc, mountpoint asc
),

application as (
  select
    cluster,
    endpoint,
    host,
    jsonb_agg(jsonb_build_object('cluster', of_cluster, 'application_id', application_id)) as applications
  from (
    select distinct
      w.cluster,
      w.endpoint,
      w.host,
      p.cluster as of_cluster,
      p.application_id
    from worst as w
    inner join process as p using (host)
    where w.reason not in ('enough_space', 'not_reported', 'short_history') and p.application_id is not null
  ) as one
  group by cluster, endpoint, host
)

select
  case
    when w.reason is not null then w.reason
    when e.endpoint is not null then 'broker_only'
    else 'no_response'
  end as reason,
  cluster,
  endpoint,
  n.instance_id,
  w.mountpoint,
  w.device,
  w.fstype,
  w.used_ratio,
  w.usable_bytes as available_bytes,
  w.size_bytes,
  w.growth / 3600 as growth_bytes_per_second,
  w.week_growth / 3600 as week_growth_bytes_per_second,
  w.day_growth / 3600 as day_growth_bytes_per_second,
  w.hours_left as hours_to_full,
  :hour + interval '1 hour'
  + make_interval(secs => case when w.hours_left < 8760 then w.hours_left end * 3600) as full_at,
  w.known_hours,
  s.stores,
  s.grown_bytes as stores_grown_bytes,
  s.grown_bytes >= :stores_share * w.day_growth * 24 as is_store_growth,
  f.task_bytes,
  f.failover_host,
  f.failover_bytes,
  (w.used_bytes + f.failover_bytes) / w.size_bytes as failover_ratio,
  w.to_add_bytes,
  v.volume_id,
  v.region,
  v.new_size_gib,
  inventory.ebs_usd_per_month(v.region, v.volume_type, v.new_size_gib - v.size_gib, 0, 0) as added_usd_per_month
from metrics.node_hourly as n
left join worst as w using (cluster, endpoint)
left join (select distinct cluster, endpoint from metrics.file_system_hourly where hour = :hour) as e
  using (cluster, endpoint)
left join lateral public.host_store_growth(:hour, w.host) as s
  on w.reason not in ('enough_space', 'not_reported', 'short_history')
left join application as a using (cluster, endpoint)
left join lateral public.host_failover(:hour, a.host, a.applications) as f on a.host is not null
-- Matched by size: a file system is hardly smaller than its volume.
left join lateral (
  select
    i.region,
    i.volume_id,
    i.volume_type,
    i.size_gib,
    ceil(i.size_gib + w.to_add_bytes / power(1024, 3))::bigint as new_size_gib,
    count(*) over () as volumes
  from inventory.volume_hourly as i
  where i.hour = :hour and w.to_add_bytes is not null and n.instance_id = i.instance_id
  and w.size_bytes / power(1024, 3) between 0.9 * i.size_gib and i.size_gib
) as v on v.volumes = 1
where n.hour = :hour

/*
title: Machine's disk fills up
resource_kind: host
owner_role: platform
maturity: stable
reads: [metrics.node_hourly, metrics.file_system_hourly, metrics.jvm_app_hourly, metrics.state_store_memory_hourly, metrics.log_dir_hourly, metrics.broker_hourly, inventory.topic_hourly]
params:
  left_out: {default: "^/(boot|efi)(/|$)", unit: regex, why: "what boots a machine is written by updates alone"}
  warning_hours: {default: 72, unit: h, why: "a weekend"}
  critical_hours: {default: 12, unit: h, why: "a night"}
  high_ratio: {default: 0.85, unit: ratio, why: "a process takes over the stores of one that died"}
  high_hours: {default: 720, unit: h, why: "what is that full and ends within a month still grows; slower growth is noise"}
  beyond_ratio: {default: 0.02, unit: ratio of the disk, why: "the tops of saw-teeth differ by as much"}
  critical_ratio: {default: 0.95, unit: ratio, why: "RocksDB writes what it compacts anew before it deletes the old: it needs room for that"}
  peak_hours: {default: 3, unit: h, why: "a compaction takes its room back in minutes, of a large store within an hour or two"}
  least_history: {default: 72, unit: h, why: "in fewer hours a burst of a day looks like growth"}
  small_bytes: {default: 21474836480, unit: bytes, why: "20 GiB: the system and its logs fill a young disk of that size and stay there"}
  room_days: {default: 14, unit: d, why: "what is added holds for two weeks"}
  target_ratio: {default: 0.7, unit: ratio, why: "and leaves a third for compactions and failovers"}
  stores_share: {default: 0.5, unit: ratio, why: "of the disk's growth: then the stores are what grows"}
key_metrics: [available_bytes, size_bytes, growth_bytes_per_second, hours_to_full, stores]
verdicts:
  nearly_full:
    status: firing
    severity: critical
    message: "{{ mountpoint }} is {{ used_ratio }} full: {{ available_bytes }} of {{ size_bytes }} are left{% if hours_to_full %}, and at its growth for {{ hours_to_full }}{% endif %}."
    actions:
      - &cure "{% if to_add_bytes %}Add {{ to_add_bytes }}{% if volume_id %} to {{ volume_id }}{% endif %}{% if added_usd_per_month %} ({{ added_usd_per_month }} by list price){% endif %}: room for {{ room_days }} at {{ target_ratio }}. {% endif %}{% if are_stores %}The state stores are what grows, most of all {{ stores[0].store }} of {{ stores[0].application_id }}: bound what it keeps, or let more machines share its tasks.{% if task_bytes %} A task of a store takes {{ task_bytes }} here on the mean.{% endif %}{% if failover_bytes %} Were {{ failover_machine }} lost, an even share of its stores without a standby would bring at least {{ failover_bytes }} here: {{ failover_ratio }} full.{% endif %}{% elif stores %}The state stores grow by {{ stores_grown_bytes }} a day, which doesn't account for it: look for logs and heap dumps.{% else %}No state store of it grows: look for logs and heap dumps.{% endif %}"
    commands: &commands
      - "du -xh --max-depth=3 {{ mountpoint }} | sort -h | tail -n 20"
      - "{% if volume_id %}aws ec2 modify-volume --region {{ region }} --volume-id {{ volume_id }} --size {{ new_size_gib.value }}{% endif %}"
      - "{% if volume_id and fstype == 'xfs' %}xfs_growfs {{ mountpoint }}{% elif volume_id and fstype == 'ext4' %}resize2fs {{ device }}{% endif %}"
  full_soon:
    status: firing
    severity: critical
    message: &ends "{{ mountpoint }} is full in {{ hours_to_full }}, at {{ full_at }}: {{ available_bytes }} of {{ size_bytes }} are left, and it grows by {{ growth_bytes_per_second }}."
    actions:
      - *cure
    commands: *commands
  filling:
    status: firing
    severity: warning
    message: *ends
    actions:
      - *cure
    commands: *commands
  high:
    status: firing
    severity: warning
    message: "{{ mountpoint }} is {{ used_ratio }} full and still grows: {{ available_bytes }} are left, at its growth for {{ hours_to_full }}."
    actions:
      - *cure
    commands: *commands
  rising:
    status: firing
    severity: warning
    message: "{{ mountpoint }} is {{ used_ratio }} full, more than ever in 4 weeks, and at the growth of the last 24 h full in {{ hours_to_full }}: {{ available_bytes }} of {{ size_bytes }} are left."
    actions:
      - *cure
    commands: *commands
  pausing:
    status: firing
    severity: warning
    message: "{{ mountpoint }} is {{ used_ratio }} full and doesn't grow now, but most of the last 7 days brought it nearer to its end: at what they added it is full in {{ hours_to_full }}. {{ available_bytes }} of {{ size_bytes }} are left."
    actions:
      - *cure
    commands: *commands
  room: {status: ok, message: "{{ mountpoint }} is {{ used_ratio }} full{% if hours_to_full %}; it has room for {{ hours_to_full }}{% else %} and doesn't fill soon{% endif %}."}
  broker_only: {status: ok, message: "It has no file system to judge but the log directories of its broker."}
  short_history: {status: unknown, message: "{{ mountpoint }} is {{ used_ratio }} full; whether it grows isn't known: {{ known_hours }} of the last 7 days are known."}
  untold: {status: unknown, message: "What is left on {{ mountpoint }} isn't told."}
  silent: {status: unknown, message: "Its node exporter did not answer, or tells no file system."}
open_after_hours: 1
clear_after_hours: 3
description: |
  Of a machine's file systems the worst counts, without those that boot it, that are read only, or that are as large as a log
  directory of its broker (disk_filling has those). As disk_filling: what is left by the smaller of two slopes (Theil and
  Sen), of 7 days and of 24 hours, these without what comes and goes by the day; above high_ratio also by the growth of the
  last day alone, if that is more than ever in 4 weeks, or by what most of the last 7 days added. What is left is the most
  of peak_hours, so that a compaction doesn't count. The growth of the last day alone isn't told where a process of the
  machine restored its state in it.
runbook: |
  1. What grew? The stores stand in the ticket; else du, and lsof +L1 for files that are deleted but still open.
  2. State directories of applications that don't run here any more: Kafka Streams removes only those of its own tasks.
  3. Grow the volume, then the file system; EBS volumes grow while in use, but only once in six hours.
limitations: |
  Which volume a file system lies on is told by its size alone, and not where two of the machine are as large; another file
  system as large as a log directory of its broker isn't judged. Stores are those of all the machine, wherever their files
  lie. A restore that doesn't fit is seen when the disk is nearly full. Growth isn't computed for what a day's growth
  can't fill in time. Machines whose node exporter isn't read aren't seen. What a lost machine adds counts SST files alone,
  as if each process that is left took as many of its tasks.
*/
with file_system as materialized (
  select
    f.*,
    d.usable_bytes,
    f.size_bytes - d.usable_bytes as used_bytes,
    1 - d.usable_bytes / f.size_bytes as used_ratio,
    d.known_hours_of_day,
    d.range_bytes,
    coalesce(f.instance_id, substring(f.endpoint from '://([^/:]+)'), f.endpoint) as machine
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

-- What the broker tells of itself, as it told it last.
log_dir as (
  select distinct
    coalesce(b.instance_id, substring(b.endpoint from '://([^/:]+)')) as machine,
    d.total_bytes
  from metrics.log_dir_hourly as d
  inner join metrics.broker_hourly as b using (hour, cluster, broker_id)
  where d.hour > :hour - interval '24 hours' and d.hour <= :hour
),

process as materialized (
  select
    a.cluster,
    a.app,
    a.endpoint,
    a.application_id,
    coalesce(a.instance_id, substring(a.endpoint from '://([^/:]+)'), a.endpoint) as machine,
    r.endpoint is not null as has_restored
  from metrics.jvm_app_hourly as a
  left join (
    select distinct cluster, endpoint
    from public.processes_restoring(:hour - interval '23 hours', :hour)
  ) as r using (cluster, endpoint)
  where a.hour = :hour
),

-- Growth takes long to compute: only where something may come of it. What a day's growth fills in warning_hours, or in
-- fewer, has moved by an hour of that within the day.
judged as (
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
    g.known_hours is null as is_still
  from file_system as f
  left join lateral public.disk_growth(
    'file_system', f.cluster, f.endpoint, f.mountpoint, f.hour, f.used_bytes, f.usable_bytes,
    f.used_ratio > :high_ratio, :least_history, :beyond_ratio * f.size_bytes
  ) as g on
    f.used_ratio > :high_ratio or f.range_bytes >= f.usable_bytes / :warning_hours or f.known_hours_of_day < 12
  where not exists (select from log_dir as d where d.machine = f.machine and d.total_bytes = f.size_bytes)
),

verdict as (
  select
    *,
    case
      when used_ratio is null then 'untold'
      when known_hours < :least_history and size_bytes < :small_bytes and not is_still then 'short_history'
      when used_ratio > :critical_ratio then 'nearly_full'
      when hours_to_full <= :critical_hours then 'full_soon'
      when hours_to_full <= :warning_hours then 'filling'
      when is_highest and hours_to_full <= :high_hours then 'high'
      when
        is_beyond and hours_to_full_by_day <= :warning_hours
        and not exists (select from process as p where p.machine = judged.machine and p.has_restored)
        then 'rising'
      when hours_to_full_by_days <= :warning_hours then 'pausing'
      when is_still then 'room'
      when known_hours < :least_history or growth_per_hour is null then 'short_history'
      else 'room'
    end as reason
  from judged
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
      when 'pausing' then v.hours_to_full_by_days
      else v.hours_to_full
    end as hours_left
  from verdict as v
  cross join lateral (
    select case v.reason when 'pausing' then v.growth_by_days else v.growth_per_hour end as growth
  ) as s
  order by
    cluster asc, endpoint asc,
    array_position(
      array['nearly_full', 'full_soon', 'filling', 'rising', 'pausing', 'high', 'untold', 'short_history', 'room'], reason
    ) asc,
    hours_to_full asc nulls last, used_ratio desc, mountpoint asc
),

-- Stores that were there a day ago: what came with a task isn't the store's growth.
store as (
  select
    w.cluster,
    w.endpoint,
    p.application_id,
    m.store,
    sum(m.sst_bytes) as sst_bytes,
    sum(m.sst_bytes - b.sst_bytes) as grown_bytes
  from worst as w
  inner join process as p using (machine)
  inner join metrics.state_store_memory_hourly as m
    on m.hour = :hour and p.cluster = m.cluster and p.app = m.app and p.endpoint = m.endpoint
  inner join metrics.state_store_memory_hourly as b
    on b.hour = :hour - interval '24 hours' and m.cluster = b.cluster and m.app = b.app
    and m.endpoint = b.endpoint and m.store = b.store and m.tasks = b.tasks
  where w.reason not in ('room', 'untold', 'short_history')
  group by w.cluster, w.endpoint, p.application_id, m.store
  having sum(m.sst_bytes - b.sst_bytes) > 0
),

application as (
  select distinct
    w.cluster,
    w.endpoint,
    w.machine,
    p.cluster as of_cluster,
    p.application_id
  from worst as w
  inner join process as p using (machine)
  where w.reason not in ('room', 'untold', 'short_history') and p.application_id is not null
),

held as (
  select
    p.cluster,
    p.application_id,
    p.machine,
    m.store,
    sum(m.sst_bytes) as bytes,
    sum(m.tasks) as tasks,
    sum(sum(m.tasks)) over (partition by p.cluster, p.application_id, m.store) as all_tasks
  from process as p
  inner join metrics.state_store_memory_hourly as m
    on m.hour = :hour and p.cluster = m.cluster and p.app = m.app and p.endpoint = m.endpoint
  where exists (select from application as a where a.of_cluster = p.cluster and a.application_id = p.application_id)
  group by p.cluster, p.application_id, p.machine, m.store
),

of_task as (
  select
    a.cluster,
    a.endpoint,
    sum(h.bytes) / nullif(sum(h.tasks), 0) as bytes
  from application as a
  inner join held as h
    on a.of_cluster = h.cluster and a.application_id = h.application_id and a.machine = h.machine
  where h.bytes is not null
  group by a.cluster, a.endpoint
),

-- What would be restored here if the worst other machine were lost. More tasks than the changelog has partitions are
-- standbys: those who take over such a store may have it already.
failover as (
  select distinct on (a.cluster, a.endpoint)
    a.cluster,
    a.endpoint,
    h.machine as failover_machine,
    sum(h.bytes * n.here / n.remaining) as bytes
  from application as a
  inner join held as h
    on a.of_cluster = h.cluster and a.application_id = h.application_id and a.machine <> h.machine
  inner join inventory.topic_hourly as t
    on t.hour = :hour and h.cluster = t.cluster
    and h.application_id || '-' || h.store || '-changelog' = t.topic and h.all_tasks <= t.partitions
  cross join lateral (
    select
      count(*) filter (where p.machine = a.machine) as here,
      count(*) filter (where p.machine <> h.machine) as remaining
    from process as p
    where p.cluster = h.cluster and p.application_id = h.application_id
  ) as n
  group by a.cluster, a.endpoint, h.machine
  order by a.cluster asc, a.endpoint asc, sum(h.bytes * n.here / n.remaining) desc nulls last, h.machine asc
),

stores as (
  select
    cluster,
    endpoint,
    sum(grown_bytes) as grown_bytes,
    jsonb_agg(
      jsonb_build_object(
        'store', store, 'application_id', application_id, 'grown_bytes', grown_bytes, 'store_bytes', sst_bytes
      ) order by place
    ) filter (where place <= 5) as stores
  from (
    select
      *,
      row_number() over (partition by cluster, endpoint order by grown_bytes desc, application_id asc, store asc) as place
    from store
  ) as ranked
  group by cluster, endpoint
)

select
  case
    when w.reason is not null then w.reason
    when e.endpoint is not null then 'broker_only'
    else 'silent'
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
  s.grown_bytes >= :stores_share * w.day_growth * 24 as are_stores,
  o.bytes as task_bytes,
  f.failover_machine,
  f.bytes as failover_bytes,
  (w.used_bytes + f.bytes) / w.size_bytes as failover_ratio,
  w.to_add_bytes,
  v.volume_id,
  v.region,
  v.new_size_gib,
  inventory.ebs_usd_per_month(v.region, v.volume_type, v.new_size_gib - v.size_gib, 0, 0) as added_usd_per_month
from metrics.node_hourly as n
left join worst as w using (cluster, endpoint)
left join (select distinct cluster, endpoint from metrics.file_system_hourly where hour = :hour) as e
  using (cluster, endpoint)
left join stores as s using (cluster, endpoint)
left join of_task as o using (cluster, endpoint)
left join failover as f using (cluster, endpoint)
-- By its size: a file system is hardly smaller than what it lies on.
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

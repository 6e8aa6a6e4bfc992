/*
title: A state store grows without an end
resource_kind: store
owner_role: application
maturity: stable
reads: [metrics.state_store_memory_hourly, metrics.jvm_app_hourly, metrics.file_system_hourly]
params:
  days: {default: 8, unit: d, why: "a week's rhythm and the day that it is compared with"}
  least_days: {default: 7, unit: d, why: "fewer are a rhythm, not growth"}
  bytes_per_day: {default: 134217728, unit: bytes, why: "128 MiB a day: 47 GiB a year; less outgrows nothing soon"}
  daily_growth: {default: 0.01, unit: ratio, why: "of its size a day: it doubles within 100 days"}
  rising: {default: 0.75, unit: ratio, why: "of its days must be larger than the day before: one jump isn't growth"}
  fallen: {default: 0.5, unit: ratio, why: "a store that lost half within a day was reset, and fills again"}
  ends_days: {default: 14, unit: d, why: "two weeks: to bound what a store keeps takes a release, and the store has to be built anew"}
key_metrics: [growth_bytes, store_bytes, left_days, doubles_in_days, growth_keys_per_day]
verdicts:
  ends:
    status: firing
    severity: warning
    message: "The store {{ store }} grows by {{ growth_bytes }} a day{% if growth_keys_per_day > 0 %} and {{ growth_keys_per_day }} keys{% endif %}, now {{ store_bytes }}: with all that grows there {% if is_memory %}the memory of {{ machine }} ends{% else %}{{ mountpoint }} of {{ machine }} is full{% endif %} in {{ left_days }}, at {{ ends_at }}."
    actions:
      - &cure "{% if growth_keys_per_day > 0 %}Keys come and none go: delete old ones by a punctuation, or use a windowed store; its changelog then wants cleanup.policy compact,delete.{% else %}The number of its keys doesn't grow, their values do: look at what is appended to them.{% endif %}"
    commands: &commands
      - "kafka-log-dirs.sh --bootstrap-server {{ bootstrap_servers }} --describe --topic-list {{ topic }}"
      - "{% if mountpoint %}du -xh --max-depth=4 {{ mountpoint }} | grep {{ application_id }} | sort -h | tail -n 20{% endif %}"
  grows:
    status: firing
    severity: info
    message: "The store {{ store }} grows by {{ growth_bytes }} a day{% if growth_keys_per_day > 0 %} and {{ growth_keys_per_day }} keys{% endif %}, now {{ store_bytes }}: in {{ doubles_in_days }} it is twice as large."
    actions:
      - *cure
    commands: *commands
  steady: {status: ok, message: "The store {{ store }} doesn't grow by much: {{ store_bytes }}."}
  windowed: {status: ok, message: "The store {{ store }} is windowed: its retention bounds it."}
  fell: {status: unknown, message: "The store {{ store }} lost much of its size within a day: it was reset or restored.", is_not_applicable: true}
  short: {status: unknown, message: "The size of the store {{ store }} is known of only {{ known_days }} with as many tasks as now."}
open_after_hours: 24
clear_after_hours: 24
description: |
  The Theil-Sen slope of the store's daily medians of total-sst-files-size, summed over all processes, is bytes_per_day
  or more and daily_growth of its size, and most of its days are larger than the day before. Days with another number of
  tasks don't count.
  It ends something where it grows by bytes_per_day, as most of its days say, and what it takes with the other stores that
  grow so on the same machine or in the same process is at most ends_days away from what is left: of the machine's largest
  file system that can be written, and of the process' memory, of which the indexes and filters of its files (table
  readers) take a share as the files grow.
runbook: |
  1. Do keys grow with it? Then nothing removes them: a TTL by punctuation, or a windowed store.
  2. Only bytes grow: values do. Drop fields, or keep lists elsewhere.
  3. When the disk ends, and how long a restore takes, follow from its size: see the machine's file system.
limitations: |
  Which file system the stores lie on isn't told: the machine's largest is taken for it, and only where node exporter tells
  it. Memory that lies in caches doesn't grow with the store. Keys are RocksDB's estimate, and compaction moves sizes by steps. In-memory stores tell no size. Windowed stores are taken as
  bounded, also those whose input grows.
*/
with held as (
  select distinct
    m.cluster,
    p.application_id,
    m.store,
    m.kind
  from metrics.state_store_memory_hourly as m
  inner join metrics.jvm_app_hourly as p using (hour, cluster, app, endpoint)
  where m.hour = :hour and p.application_id is not null
),

growth as materialized (
  select
    g.*,
    f.has_fallen,
    g.known_days >= :least_days and not f.has_fallen and g.bytes_per_day >= :bytes_per_day
    and g.rising_days >= :rising * (g.known_days - 1) as is_rising
  from public.store_growth(:hour, :days) as g
  cross join lateral (select g.most_fallen_ratio >= :fallen as has_fallen) as f
),

-- What each process has of it. Windowed stores are bounded.
part as (
  select
    m.cluster,
    p.application_id,
    m.store,
    m.endpoint,
    coalesce(p.instance_id, substring(m.endpoint from '://([^/:]+)'), m.endpoint) as machine,
    g.bytes_per_day * m.sst_bytes / sum(m.sst_bytes) over of_store as disk_growth,
    g.bytes_per_day * m.table_readers_bytes / sum(m.sst_bytes) over of_store as memory_growth,
    p.memory_limit_bytes - p.resident_bytes as free_bytes
  from metrics.state_store_memory_hourly as m
  inner join metrics.jvm_app_hourly as p using (hour, cluster, endpoint)
  inner join growth as g on m.cluster = g.cluster and p.application_id = g.application_id and m.store = g.store
  where m.hour = :hour and g.is_rising and m.kind = 'key_value' and m.sst_bytes > 0
  window of_store as (partition by m.cluster, p.application_id, m.store)
),

disk as (
  select distinct on (coalesce(instance_id, substring(endpoint from '://([^/:]+)'), endpoint))
    coalesce(instance_id, substring(endpoint from '://([^/:]+)'), endpoint) as machine,
    mountpoint,
    available_bytes
  from metrics.file_system_hourly
  where hour = :hour and read_only is not true
  order by coalesce(instance_id, substring(endpoint from '://([^/:]+)'), endpoint), size_bytes desc, mountpoint asc
),

ending as (
  select
    p.*,
    d.mountpoint,
    d.available_bytes / sum(p.disk_growth) over (partition by p.machine) as disk_days,
    p.free_bytes / nullif(sum(p.memory_growth) over (partition by p.cluster, p.endpoint), 0) as memory_days
  from part as p
  left join disk as d using (machine)
),

soonest as (
  select distinct on (cluster, application_id, store)
    *,
    least(disk_days, memory_days) as left_days
  from ending
  order by cluster asc, application_id asc, store asc, left_days asc nulls last, endpoint asc
)

select
  case
    when h.kind <> 'key_value' then 'windowed'
    when g.known_days is null or g.known_days < :least_days or g.bytes_per_day is null then 'short'
    when g.has_fallen then 'fell'
    when e.left_days <= :ends_days then 'ends'
    when g.is_rising and g.bytes_per_day >= :daily_growth * g.sst_bytes then 'grows'
    else 'steady'
  end as reason,
  cluster,
  h.application_id || '-' || h.store || '-changelog' as topic,
  h.application_id,
  h.store,
  g.bytes_per_day as growth_bytes,
  g.sst_bytes as store_bytes,
  g.sst_bytes / nullif(greatest(g.bytes_per_day, 0), 0) as doubles_in_days,
  g.keys_per_day as growth_keys_per_day,
  g.keys as store_keys,
  coalesce(g.known_days, 0) as known_days,
  e.left_days,
  :hour + interval '1 hour'
  + make_interval(secs => case when e.left_days < 3650 then e.left_days end * 86400) as ends_at,
  coalesce(e.memory_days < e.disk_days, e.disk_days is null) as is_memory,
  e.machine,
  e.mountpoint
from held as h
left join growth as g using (cluster, application_id, store)
left join soonest as e using (cluster, application_id, store)

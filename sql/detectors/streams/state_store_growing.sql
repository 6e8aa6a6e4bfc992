/*
title: Unbounded state store growth
resource_kind: store
owner_role: application
maturity: stable
reads: [metrics.state_store_memory_hourly, metrics.jvm_app_hourly, metrics.file_system_hourly]
params:
  days: {default: 8, unit: d, why: "one weekly cycle and the day before it"}
  least_days: {default: 7, unit: d, why: "fewer days may show a weekly cycle, not growth"}
  bytes_per_day: {default: 134217728, unit: bytes, why: "128 MiB a day are 47 GiB a year; less exhausts no host soon"}
  daily_growth: {default: 0.01, unit: ratio, why: "of its size a day: the store doubles within 100 days"}
  rising: {default: 0.75, unit: ratio, why: "of its days are larger than the day before: one jump is not growth"}
  fallen: {default: 0.5, unit: ratio, why: "a store that lost half its size within a day was reset, and fills again"}
  ends_days: {default: 14, unit: d, why: "to limit what a store keeps takes a release and a rebuild of the store"}
key_metrics: [growth_bytes, store_bytes, remaining_days, doubling_days, growth_keys_per_day]
verdicts:
  exhausts_capacity:
    status: firing
    severity: warning
    message: >
      Store {{ store }} of {{ application_id }} grows {{ growth_bytes }} per day (now {{ store_bytes }}); host {{ host }} runs
      out of {{ "memory" if is_memory_bound else "disk space" }} in {{ remaining_days }}.
    details:
      - "Exhausted at {{ exhausted_at }}, together with all other stores that grow there."
      - "{% if mountpoint %}The file system is assumed to be {{ mountpoint }}, the largest of the host.{% endif %}"
      - &keys "{% if growth_keys_per_day > 0 %}The number of keys grows by {{ growth_keys_per_day }} per day.{% endif %}"
    impact: "When the host is full or out of memory, all tasks there fail, and their state is restored elsewhere."
    actions:
      - "Add capacity to {{ host }} before {{ exhausted_at }}."
      - &delete_keys >
        {% if growth_keys_per_day > 0 %}Limit the keys: delete old ones in a punctuator, or use a windowed store (its
        changelog needs cleanup.policy=compact,delete).{% else %}Limit the values: their size grows, not the number of keys;
        check for lists that records are appended to.{% endif %}
    commands: &commands
      - "kafka-log-dirs.sh --bootstrap-server {{ bootstrap_servers }} --describe --topic-list {{ topic }}"
      - "{% if mountpoint %}du -xh --max-depth=4 {{ mountpoint }} | grep {{ application_id }} | sort -h | tail -n 20{% endif %}"
  growing:
    status: firing
    severity: info
    message: >
      Store {{ store }} of {{ application_id }} grows {{ growth_bytes }} per day (now {{ store_bytes }}), and doubles in
      {{ doubling_days }}.
    details: [*keys]
    impact: "The store outgrows its hosts eventually, and each restore takes longer."
    actions: [*delete_keys]
    commands: *commands
  steady: {status: ok, message: "Store {{ store }} of {{ application_id }} does not grow significantly ({{ store_bytes }})."}
  windowed: {status: ok, message: "Store {{ store }} of {{ application_id }} is windowed: its retention bounds its size."}
  shrunk:
    status: unknown
    message: >
      Not applicable: store {{ store }} of {{ application_id }} lost at least half its size within a day; it was reset or
      restored.
    is_not_applicable: true
  short_history:
    status: unknown
    message: >
      Not evaluated: store {{ store }} of {{ application_id }} has only {{ known_days }} of sizes with its current number of
      tasks.
open_after_hours: 24
clear_after_hours: 24
description: |
  A store is growing if the Theil-Sen slope of its daily medians of total-sst-files-size, summed over all processes, is at
  least `bytes_per_day` and `daily_growth` of its size, and most of its days are larger than the day before. Days with
  another number of tasks do not count.
  A store exhausts a host if, together with all other growing stores of that host or process, it needs the remaining
  capacity within `ends_days`. Capacity is the host's largest writable file system, and the memory of the process, of which
  index and filter blocks (table readers) take a share that grows with the files.
runbook: |
  ## Meaning
  A RocksDB store of a Kafka Streams application grows steadily and has no upper limit.
  ## Impact
  The host runs out of disk space or memory. Restores take longer with each day.
  ## Diagnosis
  1. Does the number of keys grow? Then nothing deletes old keys.
  2. Do only the bytes grow? Then the values grow.
  ## Mitigation
  1. Add disk space or memory where it runs out.
  2. Keys: a TTL by punctuator, or a windowed store. Values: drop fields, or store lists elsewhere.
limitations: |
  The file system of the stores is not reported: the largest of the host is assumed, and only where node exporter reports
  it. Memory in block caches does not grow with the store. Key counts are estimates of RocksDB, and compaction changes
  sizes in steps. In-memory stores report no size. Windowed stores count as bounded even if their input grows.
*/
with current_store as (
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

-- The share of each process in the growth of a store. Windowed stores are bounded.
store_share as (
  select
    m.cluster,
    p.application_id,
    m.store,
    m.endpoint,
    coalesce(p.instance_id, substring(m.endpoint from '://([^/:]+)'), m.endpoint) as host,
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
    coalesce(instance_id, substring(endpoint from '://([^/:]+)'), endpoint) as host,
    mountpoint,
    available_bytes
  from metrics.file_system_hourly
  where hour = :hour and read_only is not true
  order by coalesce(instance_id, substring(endpoint from '://([^/:]+)'), endpoint), size_bytes desc, mountpoint asc
),

remaining as (
  select
    p.*,
    d.mountpoint,
    d.available_bytes / sum(p.disk_growth) over (partition by p.host) as disk_days,
    p.free_bytes / nullif(sum(p.memory_growth) over (partition by p.cluster, p.endpoint), 0) as memory_days
  from store_share as p
  left join disk as d using (host)
),

soonest as (
  select distinct on (cluster, application_id, store)
    *,
    least(disk_days, memory_days) as remaining_days
  from remaining
  order by cluster asc, application_id asc, store asc, remaining_days asc nulls last, endpoint asc
)

select
  case
    when h.kind <> 'key_value' then 'windowed'
    when g.known_days is null or g.known_days < :least_days or g.bytes_per_day is null then 'short_history'
    when g.has_fallen then 'shrunk'
    when e.remaining_days <= :ends_days then 'exhausts_capacity'
    when g.is_rising and g.bytes_per_day >= :daily_growth * g.sst_bytes then 'growing'
    else 'steady'
  end as reason,
  cluster,
  h.application_id || '-' || h.store || '-changelog' as topic,
  h.application_id,
  h.store,
  g.bytes_per_day as growth_bytes,
  g.sst_bytes as store_bytes,
  g.sst_bytes / nullif(greatest(g.bytes_per_day, 0), 0) as doubling_days,
  g.keys_per_day as growth_keys_per_day,
  g.keys as store_keys,
  coalesce(g.known_days, 0) as known_days,
  e.remaining_days,
  :hour + interval '1 hour'
  + make_interval(secs => case when e.remaining_days < 3650 then e.remaining_days end * 86400) as exhausted_at,
  coalesce(e.memory_days < e.disk_days, e.disk_days is null) as is_memory_bound,
  e.host,
  e.mountpoint
from current_store as h
left join growth as g using (cluster, application_id, store)
left join soonest as e using (cluster, application_id, store)

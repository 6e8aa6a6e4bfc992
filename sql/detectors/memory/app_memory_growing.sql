/*
title: Memory of a process grows and grows
resource_kind: process
owner_role: application
maturity: stable
reads: [metrics.jvm_app_hourly, metrics.node_hourly]
params:
  end_percent: {default: 85, unit: "%", why: "above it the page cache is gone and the kernel kills; of a heap, collections free too little"}
  warning_hours: {default: 72, unit: h, why: "a weekend"}
  warm_up_hours: {default: 2, unit: h, why: "classes, code and pools are taken after a start"}
  full_days: {default: 30, unit: d, why: "of what grows so slowly that the rest lasts for a month, app_memory_heavy tells when it is too much"}
  native_percent: {default: 10, unit: "%", why: "of the heap's maximum: every JVM takes so much beside it and tells nobody (the collector's tables, symbols, arenas)"}
  days: {default: 8, unit: d, why: "a week's rhythm, and the day that is held against the same one of the week before"}
  least_hours: {default: 48, unit: h, why: "two days tell growth from a daily rhythm"}
key_metrics: [memory_bytes, limit_bytes, growth_bytes, hours_to_limit, grown_most]
verdicts:
  memory_grows:
    status: firing
    severity: warning
    message: "Its memory grows by {{ growth_bytes }} a day since its start: {{ memory_bytes }} of {{ limit_bytes }} are taken, {% if hours_to_limit.value > 0 %}{{ end_percent.value }} % in {{ hours_to_limit }}{% else %}more than {{ end_percent.value }} % already{% endif %}. Most of that is {{ grown_most }}."
    actions:
      - "Restart it before that, one process after the other. {% if grown_most == 'RocksDB' %}Bound RocksDB: one block cache for all stores, with a write buffer manager charged to it (RocksDBConfigSetter).{% elif grown_most == 'threads' %}See which threads are made and never end.{% elif grown_most == 'direct buffers' %}Set -XX:MaxDirectMemorySize, and see who takes them.{% elif grown_most == 'classes and code' %}See which classes are loaded over and over; -XX:MaxMetaspaceSize bounds them.{% else %}JMX shows none of it: native memory. Close RocksDB iterators, bound malloc's arenas (MALLOC_ARENA_MAX=2) or use jemalloc; Kafka Streams before 2.3 leaks bloom filters.{% endif %}"
    commands: &commands ["jcmd $(pgrep -f '{{ app }}' | head -n 1) VM.native_memory summary", "jcmd $(pgrep -f '{{ app }}' | head -n 1) GC.class_histogram | head -n 30"]
  heap_grows:
    status: firing
    severity: warning
    message: "What a collection leaves of its heap grows by {{ growth_bytes }} a day since its start: {{ memory_bytes }} of {{ limit_bytes }}, {% if hours_to_limit.value > 0 %}{{ end_percent.value }} % in {{ hours_to_limit }}{% else %}more than {{ end_percent.value }} % already{% endif %}."
    actions:
      - "Something holds objects for ever: take two class histograms an hour apart and see what has grown. Restart it before the heap is full, one process after the other."
    commands: *commands
  steady: {status: ok, message: "Its memory doesn't grow to {{ end_percent.value }} % within {{ warning_hours }}{% if memory_bytes %}: it has {{ memory_bytes }}{% endif %}."}
  short_history: {status: unknown, message: "It is known of only {{ known_hours }} since it started; {{ least_hours.value }} h tell growth from a daily rhythm."}
  untold: {status: unknown, message: "It tells neither what a collection leaves of its heap nor its resident memory, and its machine's is unknown or shared with other JVMs."}
  silent: {status: unknown, message: "It did not answer."}
open_after_hours: 3
clear_after_hours: 24
description: |
  Of its present life, warm_up_hours left out: memory (resident; else what its machine has in use, where no other JVM runs)
  or what collections left of the heap reaches end_percent within warning_hours, and all of its limit within full_days.
  Asked is what an hour has more than the same hour of the day before, in the middle of the last six hours, of the last day
  and of the day before it: it grows by the least of the three, and by no more than half of what it has more than a week
  ago, so that neither a step, nor what has ended, nor a daily or weekly rhythm is growth. What grows more slowly than the
  day before is taken to slow down further by as much: pools settle. Of a life of two days its Theil-Sen slope stands for
  the day before. RocksDB isn't judged where its configuration bounds it, for caches fill for days; nor is a heap that is
  touched for the first time: where JMX doesn't tell of what grows most, two days' growth must lie beyond the heap's
  maximum, native_percent of it, and all that JMX tells.
runbook: |
  1. Which part grows? The plot has them stacked; what remains above them is native memory that JMX doesn't show.
  2. Heap: two histograms. Native: start one process with -XX:NativeMemoryTracking=summary, and compare after a day.
  3. Until it is mended: restart in time, in turn, so that standbys take over.
limitations: |
  Lives shorter than two days. Several JVMs on a machine without exporters that tell resident memory: which of them grows
  isn't known. A leak is seen once two days of it are larger than what the heap leaves untouched, and not while the process
  has no more than a week ago. In a life's first week a weekly rhythm can't be told from growth. A process that grows with
  its load for weeks looks the same until the load stays.
*/
with process as materialized (
  select
    *,
    count(*) over (partition by cluster, instance_id) as jvms
  from metrics.jvm_app_hourly
  where hour = :hour
),

-- What is left of memory without RocksDB, where that has a bound, and without all that the heap may take, is native.
seen as materialized (
  select
    a.hour,
    p.cluster,
    p.endpoint,
    p.heap_max_bytes,
    a.heap_survived_bytes as heap_bytes,
    memory.bytes as memory_bytes,
    coalesce(
      memory.bytes - case when p.rocksdb_expected_bytes is not null then a.rocksdb_measured_bytes end, memory.bytes
    ) as unbounded_bytes,
    case when p.rocksdb_expected_bytes is null then a.rocksdb_measured_bytes end as rocksdb_bytes,
    a.direct_bytes,
    a.thread_stack_bytes,
    a.non_heap_used_bytes,
    memory.bytes - coalesce(a.rocksdb_measured_bytes, 0) - p.heap_max_bytes - a.direct_bytes - a.thread_stack_bytes
    - a.non_heap_used_bytes as native_bytes
  from process as p
  inner join metrics.jvm_app_hourly as a using (cluster, endpoint)
  left join metrics.node_hourly as n on a.hour = n.hour and a.instance_id = n.instance_id and p.jvms = 1
  cross join lateral (
    select coalesce(a.resident_bytes, n.memory_bytes * n.memory_used_mean_percent / 100) as bytes
  ) as memory
  where a.hour > :hour - make_interval(days => :days) and a.hour <= :hour
  and a.hour >= p.process_started_at + make_interval(hours => :warm_up_hours)
),

-- Each hour of the last day against the same hour of the day before.
part as materialized (
  select
    now.cluster,
    now.endpoint,
    part.name,
    percentile_cont(0.5) within group (order by part.bytes - part.bytes_before) as bytes_per_day
  from seen as now
  inner join seen as before
    on now.cluster = before.cluster and now.endpoint = before.endpoint and before.hour = now.hour - interval '1 day'
  cross join lateral (
    values
    ('memory', now.unbounded_bytes, before.unbounded_bytes),
    ('heap', now.heap_bytes, before.heap_bytes),
    ('RocksDB', now.rocksdb_bytes, before.rocksdb_bytes),
    ('direct buffers', now.direct_bytes, before.direct_bytes),
    ('threads', now.thread_stack_bytes, before.thread_stack_bytes),
    ('classes and code', now.non_heap_used_bytes, before.non_heap_used_bytes),
    ('native memory', now.native_bytes, before.native_bytes)
  ) as part (name, bytes, bytes_before)
  where now.hour > :hour - interval '1 day'
  group by now.cluster, now.endpoint, part.name
),

known as materialized (
  select
    cluster,
    endpoint,
    count(heap_bytes) as heap_hours,
    count(unbounded_bytes) as memory_hours,
    least(count(heap_bytes), count(native_bytes)) as hours,
    sum(heap_bytes) filter (where hour = :hour) as heap_bytes,
    sum(native_bytes) filter (where hour = :hour) as native_bytes,
    -- Stacks are hardly touched.
    sum(native_bytes + thread_stack_bytes - heap_max_bytes * :native_percent / 100)
      filter (where hour = :hour) as beyond_heap_bytes,
    sum(memory_bytes) filter (where hour = :hour) as memory_bytes
  from seen
  group by cluster, endpoint
),

-- More is asked only where a day's growth would reach the limit.
may_end as materialized (
  select
    cluster,
    endpoint,
    room.*,
    part.bytes_per_day
  from process as p
  inner join known as k using (cluster, endpoint)
  cross join lateral (
    values
    ('heap', k.heap_hours, k.heap_bytes, p.heap_max_bytes, p.heap_max_bytes * :end_percent / 100 - k.heap_bytes),
    (
      'memory', k.memory_hours, k.memory_bytes, p.memory_limit_bytes,
      p.memory_limit_bytes * :end_percent / 100 - k.memory_bytes
    )
  ) as room (name, hours, bytes, limit_bytes, room_bytes)
  inner join part using (cluster, endpoint, name)
  where room.hours >= :least_hours and part.bytes_per_day * :warning_hours >= room.room_bytes * 24
),

growth as (
  select
    m.cluster,
    m.endpoint,
    m.name,
    m.bytes,
    m.limit_bytes,
    m.room_bytes,
    m.bytes_per_day,
    percentile_cont(0.5) within group (order by one.bytes - one.bytes_before) filter (where one.hours_ago < 6) as newest,
    percentile_cont(0.5) within group (order by one.bytes - one.bytes_week_before)
      filter (where one.hours_ago < 24) as of_week,
    coalesce(
      percentile_cont(0.5) within group (order by one.bytes - one.bytes_before)
        filter (where one.hours_ago between 24 and 47),
      public.theil_sen(array_agg(now.hour), array_agg(one.bytes)) * 24
    ) as of_day_before
  from may_end as m
  inner join seen as now using (cluster, endpoint)
  left join seen as before
    on m.cluster = before.cluster and m.endpoint = before.endpoint and before.hour = now.hour - interval '1 day'
  left join seen as week
    on m.cluster = week.cluster and m.endpoint = week.endpoint and week.hour = now.hour - interval '7 days'
  cross join lateral (
    select
      case m.name when 'heap' then now.heap_bytes else now.unbounded_bytes end as bytes,
      case m.name when 'heap' then before.heap_bytes else before.unbounded_bytes end as bytes_before,
      case m.name when 'heap' then week.heap_bytes else week.unbounded_bytes end as bytes_week_before,
      extract(epoch from :hour - now.hour) / 3600 as hours_ago
  ) as one
  where one.bytes is not null
  group by m.cluster, m.endpoint, m.name, m.bytes, m.limit_bytes, m.room_bytes, m.bytes_per_day
),

forecast as (
  select
    *,
    least(bytes_per_day, newest, of_day_before, of_week / 2)
    * greatest(0, least(1, bytes_per_day / nullif(of_day_before, 0))) as growth_bytes
  from growth
),

grown_most as (
  select distinct on (cluster, endpoint)
    cluster,
    endpoint,
    name
  from part
  where name not in ('memory', 'heap')
  order by cluster asc, endpoint asc, bytes_per_day desc nulls last, name desc
),

-- What grows and JMX doesn't tell of may be a heap that is touched for the first time, until it lies beyond the heap.
soonest as (
  select distinct on (cluster, endpoint) f.*
  from (
    select *, greatest(room_bytes, 0) / nullif(greatest(growth_bytes, 0), 0) * 24 as hours_to_limit from forecast
  ) as f
  inner join known as k using (cluster, endpoint)
  inner join grown_most as g using (cluster, endpoint)
  where
    f.hours_to_limit <= :warning_hours and f.limit_bytes - f.bytes <= f.growth_bytes * :full_days
    and (
      f.name = 'heap'
      or k.native_bytes is not null and (g.name <> 'native memory' or k.beyond_heap_bytes >= 2 * f.growth_bytes)
    )
  order by cluster asc, endpoint asc, f.hours_to_limit asc, f.name asc
)

select
  case
    when p.samples is null then 'silent'
    when s.name = 'memory' then 'memory_grows'
    when s.name = 'heap' then 'heap_grows'
    when k.heap_hours is not null and (k.heap_bytes is null or k.native_bytes is null) then 'untold'
    when k.hours >= :least_hours then 'steady'
    else 'short_history'
  end as reason,
  cluster,
  endpoint,
  p.app,
  case s.name when 'heap' then s.bytes else k.memory_bytes end as memory_bytes,
  coalesce(s.limit_bytes, p.memory_limit_bytes) as limit_bytes,
  s.growth_bytes,
  s.hours_to_limit,
  case s.name when 'heap' then 'heap' else g.name end as grown_most,
  coalesce(k.hours, 0) as known_hours,
  p.process_started_at
from process as p
left join soonest as s using (cluster, endpoint)
left join known as k using (cluster, endpoint)
left join grown_most as g using (cluster, endpoint)

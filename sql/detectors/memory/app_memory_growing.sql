/*
title: Process memory growth (possible leak)
resource_kind: process
owner_role: application
maturity: stable
reads: [metrics.jvm_app_hourly, metrics.node_hourly]
params:
  end_percent:
    default: 85
    unit: "%"
    why: "above it no page cache is left and the kernel kills processes; in a heap, collections free too little"
  warning_hours: {default: 72, unit: h, why: "a weekend"}
  warm_up_hours: {default: 2, unit: h, why: "classes, code, and pools are allocated after a start"}
  full_days: {default: 30, unit: d, why: "slower growth is covered by app_memory_heavy once it is too much"}
  native_percent:
    default: 10
    unit: "%"
    why: "of the maximum heap: native memory that every JVM takes without reporting it (GC tables, symbols, arenas)"
  days: {default: 8, unit: d, why: "a weekly rhythm, and the same day of the previous week for comparison"}
  least_hours: {default: 48, unit: h, why: "two days distinguish growth from a daily rhythm"}
key_metrics: [memory_bytes, limit_bytes, growth_bytes, hours_to_limit, fastest_growing_part]
verdicts:
  memory_growth:
    status: firing
    severity: warning
    message: >-
      Memory of {{ name }} grows by {{ growth_bytes }} a day: {{ memory_bytes }} of {{ limit_bytes }},
      {{ end_percent }} {{ 'in ' ~ hours_to_limit if hours_to_limit.value > 0 else 'already exceeded' }}.
    details:
      - "Fastest growing part: {{ fastest_growing_part }}."
      - &started "{% if process_started_at %}The process has run since {{ process_started_at }}.{% endif %}"
    impact: "The kernel OOM-kills the process when host or container memory is exhausted; its tasks restore elsewhere."
    actions:
      - "Restart the processes of the application one after the other before the limit is reached."
      - >-
        {% if fastest_growing_part == 'RocksDB' %}Limit RocksDB with a RocksDBConfigSetter: one block cache for all stores,
        and a write buffer manager charged to it.{% endif %}
      - >-
        {% if fastest_growing_part == 'threads' %}Find threads that are created and never end: compare two thread
        dumps.{% endif %}
      - >-
        {% if fastest_growing_part == 'direct buffers' %}Set -XX:MaxDirectMemorySize, and find the code that allocates
        direct buffers.{% endif %}
      - >-
        {% if fastest_growing_part == 'classes and code' %}Find classes that are loaded repeatedly, and limit them with
        -XX:MaxMetaspaceSize.{% endif %}
      - >-
        {% if fastest_growing_part == 'native memory' %}Close RocksDB iterators, and limit malloc arenas
        (MALLOC_ARENA_MAX=2) or use jemalloc. Kafka Streams before 2.3 leaks bloom filters.{% endif %}
    commands: &commands
      - "for pid in $(pgrep -f -- {{ 'java.*' ~ app.value }}); do jcmd \"$pid\" VM.native_memory summary; done"
      - "for pid in $(pgrep -f -- {{ 'java.*' ~ app.value }}); do jcmd \"$pid\" GC.class_histogram | head -n 30; done"
  heap_growth:
    status: firing
    severity: warning
    message: >-
      Heap of {{ name }} after garbage collection grows by {{ growth_bytes }} a day: {{ memory_bytes }} of
      {{ limit_bytes }}, {{ end_percent }} {{ 'in ' ~ hours_to_limit if hours_to_limit.value > 0 else 'already exceeded' }}.
    details: [*started]
    impact: "Garbage collections free less and less memory: GC pauses grow until the process fails with OutOfMemoryError."
    actions:
      - "Restart the processes of the application one after the other before the heap is full."
      - "Take two class histograms an hour apart, and find the classes with growing instance counts. Each runs a full GC."
    commands: *commands
  steady:
    status: ok
    message: >-
      Memory of {{ name }} does not reach {{ end_percent }} of its limit within {{ warning_hours }}
      {%- if memory_bytes %}: {{ memory_bytes }} in use{% endif %}.
  short_history:
    status: unknown
    message: >-
      Not evaluated: {{ name }} has only {{ known_hours }} of history since its start; at least
      {{ least_hours.value }} h are needed.
  not_reported:
    status: unknown
    message: "Not evaluated: {{ name }} did not report its heap after garbage collection, its resident memory, or its memory limit."
    details: ["The memory of its host is unknown, or shared with other JVMs."]
  no_response: {status: unknown, message: "Not evaluated: {{ name }} did not respond over JMX."}
causes:
  growth_fills_memory: [memory_growth, heap_growth]
  growth_stops_process: [memory_growth, heap_growth]
  heap_growth_ends_threads: [heap_growth]
open_after_hours: 3
clear_after_hours: 24
description: |
  Fires if memory, or heap after garbage collection, reaches end_percent of its limit within warning_hours, and all of it
  within full_days. Only the current run of the process counts, without warm_up_hours. Memory is resident memory, or that
  of the host where no other JVM runs.

  Growth is the difference between an hour and the same hour of the previous day: the smallest of the medians over the
  last six hours, the last day, and the day before it, and at most half of the growth since the previous week. So neither
  steps, nor past growth, nor daily or weekly rhythms count. Growth that slows down is assumed to slow down further. For a
  run of two days its Theil-Sen slope replaces the day before.

  RocksDB up to its configured caches and write buffers is excluded, because caches fill for days. So is a heap that is
  touched for the first time: if JMX does not report the fastest growing part, two days of growth must lie beyond the
  maximum heap, native_percent of it, and all that JMX reports.
runbook: |
  ## Meaning
  The memory of this process has grown for days and will reach its limit. A leak is likely.

  ## Impact
  Out of heap the process fails with OutOfMemoryError. Out of host or container memory the kernel OOM-kills it.

  ## Diagnosis
  1. Find the growing part: the chart stacks heap, RocksDB, threads, and direct buffers; the rest is native memory.
  2. Heap: compare two class histograms. Each runs a full GC, which pauses the process.
  3. Native memory: start one process with -XX:NativeMemoryTracking=summary, and compare after a day.

  ## Mitigation
  1. Restart processes one after the other, so that standbys take over.
  2. Limit the growing part as recommended.
limitations: |
  Runs shorter than two days are not evaluated. With several JVMs on a host and no exporter of resident memory, the
  growing one is unknown. A leak is detected once two days of it exceed the untouched part of the heap, and not while the
  process uses no more than a week ago. In the first week of a run, a weekly rhythm is reported as growth, and so is a
  load that grows for weeks.
*/
with process as materialized (
  select
    *,
    count(*) over (partition by cluster, instance_id) as jvms
  from metrics.jvm_app_hourly
  where hour = :hour
),

-- Native memory is what remains without the maximum heap, RocksDB, and the parts that JMX reports.
reading as materialized (
  select
    a.hour,
    p.cluster,
    p.endpoint,
    p.heap_max_bytes,
    a.heap_survived_bytes as heap_bytes,
    memory.bytes as memory_bytes,
    memory.bytes - coalesce(a.rocksdb_measured_bytes - rocksdb.unbounded_bytes, 0) as unbounded_bytes,
    rocksdb.unbounded_bytes as rocksdb_bytes,
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
  -- Index and filter blocks are in addition to the caches and write buffers that are configured.
  cross join lateral (
    select case when a.rocksdb_measured_bytes is not null
      then greatest(0, a.rocksdb_measured_bytes - coalesce(p.rocksdb_expected_bytes, 0)) end as unbounded_bytes
  ) as rocksdb
  where a.hour > :hour - make_interval(days => :days) and a.hour <= :hour
  and a.hour >= p.process_started_at + make_interval(hours => :warm_up_hours)
),

-- Growth of each part: each hour of the last day against the same hour of the previous day.
part as materialized (
  select
    now.cluster,
    now.endpoint,
    part.name,
    percentile_cont(0.5) within group (order by part.bytes - part.bytes_before) as bytes_per_day
  from reading as now
  inner join reading as before
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
    -- Thread stacks are reserved, but mostly not resident.
    sum(native_bytes + thread_stack_bytes - heap_max_bytes * :native_percent / 100)
      filter (where hour = :hour) as beyond_heap_bytes,
    sum(memory_bytes) filter (where hour = :hour) as memory_bytes
  from reading
  group by cluster, endpoint
),

-- Only processes that would reach the limit at the growth of the last day.
candidate as materialized (
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
    percentile_cont(0.5) within group (order by difference.bytes - difference.bytes_before) filter (where difference.hours_ago < 6) as newest,
    percentile_cont(0.5) within group (order by difference.bytes - difference.bytes_week_before)
      filter (where difference.hours_ago < 24) as of_week,
    coalesce(
      percentile_cont(0.5) within group (order by difference.bytes - difference.bytes_before)
        filter (where difference.hours_ago between 24 and 47),
      public.theil_sen(array_agg(now.hour), array_agg(difference.bytes)) * 24
    ) as of_day_before
  from candidate as m
  inner join reading as now using (cluster, endpoint)
  left join reading as before
    on m.cluster = before.cluster and m.endpoint = before.endpoint and before.hour = now.hour - interval '1 day'
  left join reading as week
    on m.cluster = week.cluster and m.endpoint = week.endpoint and week.hour = now.hour - interval '7 days'
  cross join lateral (
    select
      case m.name when 'heap' then now.heap_bytes else now.unbounded_bytes end as bytes,
      case m.name when 'heap' then before.heap_bytes else before.unbounded_bytes end as bytes_before,
      case m.name when 'heap' then week.heap_bytes else week.unbounded_bytes end as bytes_week_before,
      extract(epoch from :hour - now.hour) / 3600 as hours_ago
  ) as difference
  where difference.bytes is not null
  group by m.cluster, m.endpoint, m.name, m.bytes, m.limit_bytes, m.room_bytes, m.bytes_per_day
),

forecast as (
  select
    *,
    least(bytes_per_day, newest, of_day_before, of_week / 2)
    * greatest(0, least(1, bytes_per_day / nullif(of_day_before, 0))) as growth_bytes
  from growth
),

fastest_growing_part as (
  select distinct on (cluster, endpoint)
    cluster,
    endpoint,
    name
  from part
  where name not in ('memory', 'heap')
  order by cluster asc, endpoint asc, bytes_per_day desc nulls last, name desc
),

-- Growth of native memory may be a heap that is touched for the first time, unless it lies beyond the maximum heap.
soonest as (
  select distinct on (cluster, endpoint) f.*
  from (
    select *, greatest(room_bytes, 0) / nullif(greatest(growth_bytes, 0), 0) * 24 as hours_to_limit from forecast
  ) as f
  inner join known as k using (cluster, endpoint)
  inner join fastest_growing_part as g using (cluster, endpoint)
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
    when p.samples is null then 'no_response'
    when s.name = 'memory' then 'memory_growth'
    when s.name = 'heap' then 'heap_growth'
    when k.heap_hours is not null and num_nulls(k.heap_bytes, k.native_bytes, p.memory_limit_bytes) > 0 then 'not_reported'
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
  case s.name when 'heap' then 'heap' else g.name end as fastest_growing_part,
  coalesce(k.hours, 0) as known_hours,
  p.process_started_at
from process as p
left join soonest as s using (cluster, endpoint)
left join known as k using (cluster, endpoint)
left join fastest_growing_part as g using (cluster, endpoint)

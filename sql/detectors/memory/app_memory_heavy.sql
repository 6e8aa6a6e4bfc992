/*
title: Application memory over budget
resource_kind: application
owner_role: platform
maturity: stable
reads:
  - metrics.jvm_app_hourly
  - metrics.state_store_memory_hourly
  - inventory.instance_hourly
  - metrics.instance_hourly
  - metrics.node_hourly
  - inventory.topic_hourly
  - inventory.pod_hourly
params:
  heavy_percent: {default: 85, unit: "%", why: "above it no page cache is left and the kernel kills processes; 70 % is healthy"}
  split_ratio: {default: 2, unit: ratio, why: "a heap of twice its live objects takes memory that RocksDB needs"}
  heap_headroom_ratio: {default: 1.5, unit: ratio, why: "of the recommended heap over the live objects after a collection"}
  heap_floor_bytes: {default: 268435456, unit: bytes, why: "no heap below 256 MiB is recommended"}
  heap_step_bytes: {default: 67108864, unit: bytes, why: "steps of 64 MiB keep the recommendation stable between hours"}
  live_hours: {default: 24, unit: h, why: "no heap is recommended before a day of live objects is known"}
  cache_floor_bytes: {default: 134217728, unit: bytes, why: "no block cache below 128 MiB is recommended for all stores of a process"}
  live_days: {default: 7, unit: days, why: "live objects follow the day and the week; the maximum of that time counts"}
  failure_percent:
    default: 92
    unit: "%"
    why: "after a host failure, other processes take over its stores; the kernel and the page cache need the rest"
  measured_days: {default: 2, unit: days, why: "caches fill within hours; two days show whether stores still grow"}
  still_ratio: {default: 1.05, unit: ratio, why: "of the later half of that time to the earlier; write buffers vary by as much"}
  data_days: {default: 7, unit: days, why: "stores grow with a weekly rhythm"}
  paced_days: {default: 1, unit: days, why: "a slope over less time is the time of day, not growth"}
  ahead_days: {default: 14, unit: days, why: "caches that fill later than in two weeks are reported when that is closer"}
  unpacked_ratio: {default: 1, unit: ratio, why: "of cached blocks to their files: Kafka Streams does not compress blocks by default"}
  pressure_percent: {default: 85, unit: "%", why: "of the heap after a collection: the next collections free too little"}
  gc_percent: {default: 10, unit: "%", why: "of the hour in GC pauses: the application does no work meanwhile"}
key_metrics: [may_grow_to_bytes, memory_bytes, heap_max_bytes, heap_live_bytes, off_heap_bytes]
verdicts:
  heap_oversized:
    status: firing
    severity: critical
    message: >-
      Heap of {{ name }} is oversized: process {{ process }} may grow to {{ may_grow_to_bytes }}, {{ filled_percent }} of
      {{ memory_bytes }}, with only {{ heap_live_bytes }} of heap live.
    details: &parts
      - "The heap takes {{ heap_max_bytes }}, RocksDB {{ off_heap_bytes }}, and other memory {{ rest_bytes }}."
      - "{% if other_jvms_bytes %}Other JVMs on the host may grow to {{ other_jvms_bytes }}.{% endif %}"
      - "{% if affected_processes > 1 %}{{ affected_processes }} of {{ processes }} processes are affected.{% endif %}"
      - "{% if oom_kills %}Its container was OOM-killed at least {{ oom_kills | counted('time') }} in 24 h.{% endif %}"
    impact: &oom >-
      The kernel OOM-kills a process, or its page cache shrinks; its tasks restore on other hosts, where memory is short as well.
    actions: &make_room
      - >-
        {% if remedy == 'measure_heap' %}Measure the live heap for at least {{ live_hours }}, then reduce -Xmx: readings exist for only
        {{ heap_live_known_hours }}.{% endif %}
      - "{% if remedy == 'set_heap' %}Set the heap to {{ heap_to_set_bytes }}: then all parts fit.{% endif %}"
      - >-
        {% if remedy == 'share_cache' and heap_to_set_bytes < heap_max_bytes %}Set the heap to
        {{ heap_to_set_bytes }}.{% endif %}
      - >-
        {% if remedy == 'share_cache' %}Give all stores one block cache of {{ off_heap_room_bytes }}, and charge a write
        buffer manager of half of it to the cache (RocksDBConfigSetter).{% endif %}
      - >-
        {% if remedy == 'add_memory' and off_heap_bytes %}Spread the partitions over more instances: a heap of
        {{ heap_to_set_bytes }} leaves too little memory for RocksDB.{% endif %}
      - "{% if remedy == 'share_cache' or remedy == 'add_memory' %}Otherwise provide {{ memory_needed_bytes }} of memory.{% endif %}"
    commands: &smaller_heap
      - "{% if pod %}kubectl -n {{ namespace }} exec {{ pod }} -c {{ container }} -- jcmd 1 VM.flags{% endif %}"
      - "{% if jmx_port and not pod %}jcmd \"$(lsof -t -i tcp:{{ jmx_port }} -s tcp:listen)\" VM.flags{% endif %}"
  over_budget:
    status: firing
    severity: critical
    message: >-
      Memory of {{ name }} is over budget: process {{ process }} may grow to {{ may_grow_to_bytes }}, {{ filled_percent }} of
      {{ memory_bytes }} (limit {{ heavy_percent }}).
    details: *parts
    impact: *oom
    actions: *make_room
    commands: *smaller_heap
  oom_killed:
    status: firing
    severity: critical
    message: >-
      Container {{ container }} of pod {{ pod }} ({{ name }}) was OOM-killed at {{ oom_killed_at }}: its memory limit is
      {{ limit_bytes }}.
    details: *parts
    impact: *oom
    actions:
      - >-
        Raise the memory limit of the container: the kernel killed it although the known parts (heap, RocksDB, other JVM
        memory) {% if may_grow_to_bytes %}take at most {{ may_grow_to_bytes }}{% else %}are not reported{% endif %}.
      - "Limit malloc arenas (MALLOC_ARENA_MAX=2), and search for JNI leaks: no metric covers native memory outside the JVM."
    commands:
      - "{% if pod %}kubectl -n {{ namespace }} describe pod {{ pod }}{% endif %}"
      - "{% if workload %}kubectl -n {{ namespace }} get {{ workload }} -o jsonpath='{.spec.template.spec.containers[*].resources}'{% endif %}"
  overcommitted:
    status: firing
    severity: warning
    message: >-
      Memory of {{ name }} is overcommitted: process {{ process }} may grow to {{ may_grow_to_bytes }}, {{ filled_percent }}
      of {{ memory_bytes }}, once RocksDB uses its limits.
    details:
      - "RocksDB may take {{ off_heap_bytes }} by its configuration and its data."
      - "{% if off_heap_measured_bytes %}It holds {{ off_heap_measured_bytes }} now.{% endif %}"
      - "{% if fills_at %}At the growth of the last day memory is over budget at {{ fills_at }}.{% endif %}"
      - "{% if other_jvms_bytes %}Other JVMs on the host may grow to {{ other_jvms_bytes }}.{% endif %}"
      - "{% if affected_processes > 1 %}{{ affected_processes }} of {{ processes }} processes are affected.{% endif %}"
    impact: *oom
    actions: *make_room
    commands: *smaller_heap
  host_memory_full:
    status: firing
    severity: critical
    message: >-
      Memory of the host of {{ name }} (process {{ process }}) is {{ system_memory_used_percent }} used (limit
      {{ heavy_percent }}).
    details:
      - "{% if may_grow_to_bytes %}The process may grow to {{ may_grow_to_bytes }} of {{ memory_bytes }}.{% endif %}"
      - "{% if are_stores_unreported %}JMX does not expose the memory of its state stores.{% endif %}"
      - >-
        {% if host_taken_bytes %}Known JVMs on the host account for at most {{ host_taken_bytes }} of
        {{ host_used_bytes }}.{% endif %}
    impact: *oom
    actions:
      - >-
        {% if host_remedy == 'report_stores' %}Give all stores one block cache with a write buffer manager charged to it
        (RocksDBConfigSetter). Record RocksDB metrics (Kafka Streams 2.7 or later).{% endif %}
      - >-
        {% if host_remedy == 'shrink_jvms' %}Reduce the memory of
        these JVMs, or use a larger host.{% endif %}
      - >-
        {% if host_remedy == 'find_process' %}Find the
        process with the largest resident memory. If it is this JVM, restart it: it leaks native memory.{% endif %}
      - >-
        {% if host_remedy == 'find_process' %}Limit malloc
        arenas (MALLOC_ARENA_MAX=2) before you search for JNI leaks.{% endif %}
    commands:
      - "{% if region %}aws ssm start-session --region {{ region }} --target {{ instance_id }}{% endif %}"
      - "ps aux --sort=-rss | head -n 15"
  over_budget_after_failure:
    status: firing
    severity: warning
    message: >-
      {{ name }} fits now, but after a failure of one of its {{ instances }} instances, process {{ process }} may grow to
      {{ after_failure_bytes }} of {{ limit_bytes }}.
    details:
      - >-
        {% if host_after_failure_bytes > after_failure_bytes %}All JVMs of the host may then grow to
        {{ host_after_failure_bytes }} of {{ host_memory_bytes }}.{% endif %}
    impact: "One host failure makes the remaining processes run out of memory one after the other."
    actions:
      - "{% if instances_needed %}Run {{ instances_needed }} instances instead of {{ instances }}, one per host.{% endif %}"
      - "Or give all stores one block cache with a write buffer manager (RocksDBConfigSetter): it does not grow with tasks."
      - "{% if not instances_needed %}Or use larger hosts.{% endif %}"
    commands:
      - "kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --group {{ application_id }} --members"
  heap_full:
    status: firing
    severity: warning
    message: >-
      Heap of {{ name }} (process {{ process }}) is {{ heap_after_gc_percent }} full after garbage collection (limit
      {{ pressure_percent }} of {{ heap_max_bytes }}).
    details: &heap_details
      - >-
        {% if heap_remedy %}Its live objects need a heap of
        {{ heap_wanted_bytes }}.{% endif %}
    impact: "GC pauses grow until the process fails with OutOfMemoryError, or consumers are removed from their group."
    actions: &larger_heap
      - "Find what holds the heap: compare two class histograms. Each runs a full GC, which pauses the process."
      - >-
        {% if heap_remedy == 'raise_heap' %}If these objects are
        needed, raise the heap to {{ heap_wanted_bytes }}: memory suffices.{% endif %}
      - >-
        {% if heap_remedy == 'add_memory' %}If these objects are needed, add memory first: a heap of {{ heap_wanted_bytes }} does not fit.{% endif %}
    commands: &heap_commands
      - "{% if jmx_port %}jcmd \"$(lsof -t -i tcp:{{ jmx_port }} -s tcp:listen)\" GC.class_histogram | head -n 40{% endif %}"
  gc_overhead:
    status: firing
    severity: warning
    message: >-
      GC paused {{ name }} (process {{ process }}) for {{ paused_percent }} of the hour ({{ gc_seconds }}, limit
      {{ gc_percent }}).
    details: *heap_details
    impact: "The application does no work during pauses: latency rises, and consumers may be removed from their group."
    actions: *larger_heap
    commands: *heap_commands
  fits:
    status: ok
    message: >-
      Memory of {{ name }} is within budget: its fullest process may grow to {{ may_grow_to_bytes }}, {{ filled_percent }} of
      {{ memory_bytes }}.
    details: *parts
  no_response: {status: unknown, message: "Not evaluated: process {{ process }} of {{ name }} did not respond over JMX."}
  limit_unknown: {status: unknown, message: "Not evaluated: the memory of the host of {{ name }} is unknown."}
  stores_not_reported:
    status: unknown
    message: "Not evaluated: {{ name }} (process {{ process }}) did not report the memory of its state stores over JMX."
    details:
      - >-
        {% if unreported_stores %}With Kafka's defaults, its {{ unreported_stores }} stores may take it to
        {{ at_most_bytes }} of {{ limit_bytes }}.{% endif %}
      - "{% if not unreported_stores %}The number of its stores is unknown.{% endif %}"
      - "Without state stores it takes {{ may_grow_to_bytes }}."
  growth_unknown:
    status: unknown
    message: "Not evaluated: {{ name }} did not report its maximum heap, or the memory of its RocksDB stores."
  non_heap_unknown:
    status: unknown
    message: "Not evaluated: {{ name }} did not report its memory outside of heap and RocksDB."
  cache_sharing_unknown:
    status: unknown
    message: >-
      Not evaluated: {{ name }} may grow to {{ may_grow_to_bytes }} or to {{ at_most_bytes or 'more' }} of
      {{ limit_bytes }}, depending on whether its stores share a cache.
    details: ["Caches that are nearly empty do not show whether they are shared."]
  failure_unknown:
    status: unknown
    message: >-
      Not evaluated: not all {{ instances }} instances of {{ name }} reported their stores, so the effect of a failure is
      unknown.
    details: ["Its memory is within budget now."]
  failure_not_measured:
    status: unknown
    message: >-
      Not evaluated: RocksDB of {{ name }} has been measured for less than {{ measured_days }}, so the effect of a failure is
      unknown.
    details:
      - "Its memory is within budget now."
      - "By its configuration alone, process {{ process }} may then grow to {{ after_failure_bytes }} of {{ limit_bytes }}."
  heap_unknown:
    status: unknown
    message: >-
      Not evaluated: process {{ process }} of {{ name }} did not report its heap of {{ heap_max_bytes }} after garbage
      collection.
    details:
      - "Its memory is within budget."
      - "{% if heap_left_bytes %}Its live objects take at most {{ heap_left_bytes }}.{% endif %}"
  other_jvm_unknown:
    status: unknown
    message: "Not evaluated: the memory of another JVM on the host of {{ name }} is unknown."
description: |
  A process may grow to its maximum heap, its current metaspace, code, stacks, and direct buffers, and RocksDB: per store
  its write buffers, block cache, and current index and filter blocks, a shared cache once, or the reported memory if that
  is more. After measured_days without growth (still_ratio) and without fewer stores, the maximum of the reported memory
  counts instead. A cache holds no more than the files of its stores, now and in ahead_days at the growth of the last
  data_days. Write buffers hold at most twice their maximum of that time and what is written meanwhile; if that is
  unknown, all of their capacity counts.
  All JVMs of a host are added up, containers up to their limits. The worst process represents its application.

  Critical: heap and RocksDB's current memory exceed heavy_percent of the memory of the container or host, or so much of
  the host's memory is used.

  Warning: memory will be over budget once RocksDB uses its limits. Or it fits now, but exceeds failure_percent after the
  worst single host failure, when other processes have taken over its stores evenly; write buffers and own caches move
  with them, a shared cache does not grow. An application known for less than measured_days is not evaluated for that.
  Critical as well: on Kubernetes, a container that was OOM-killed in the hour, whatever its JVM reports.

  Also: a collection leaves more than pressure_percent of the heap in use, or
  GC pauses take more than gc_percent of the hour.

  If JMX does not expose the stores of a Streams application, the partitions of its changelogs give their number: they
  take nothing at least, and Kafka's defaults at most. Missing data is never healthy: a process fires if known memory
  already exceeds the limit, is ok if the possible maximum fits, and is not evaluated otherwise.
causes:
  memory_stops_threads: [heap_oversized, over_budget, host_memory_full, heap_full, gc_overhead]
  memory_stops_group: [heap_oversized, over_budget, host_memory_full, heap_full, gc_overhead]
  full_heap_ends_threads: [over_budget, overcommitted, over_budget_after_failure, heap_full, gc_overhead]
  garbage_collection_slows_group: [heap_full, gc_overhead]
  garbage_collection_delays_records: [heap_full, gc_overhead]
caused_by:
  growth_fills_memory: [heap_oversized, over_budget, host_memory_full, overcommitted, heap_full, gc_overhead]
open_after_hours: 1
clear_after_hours: 2
runbook: |
  ## Meaning
  The processes of this application may take more memory than their container or host has, or their heap is too small.

  ## Impact
  The kernel OOM-kills a process, or the process fails with OutOfMemoryError. Its tasks restore on other hosts.

  ## Diagnosis
  1. Read the parts in the chart: heap, RocksDB, other memory, and other JVMs on the host.
  2. Heap far above its live objects: the heap is oversized.
  3. Full heap or long GC pauses: find what holds it (`jcmd <pid> GC.class_histogram`) before you raise -Xmx.

  ## Mitigation
  1. Set -Xmx as recommended.
  2. Give all stores one block cache and one write buffer manager (RocksDBConfigSetter), or add instances or memory.
  3. Restart one process, wait until its stores are restored, then the next.
  4. Over budget only after a failure: add an instance before a host fails.
limitations: |
  Stores without a changelog are not counted if JMX does not expose them. RocksDB's memory in a quiet week does not predict
  a busy one. If blocks are compressed, a cache holds more than its store's files: set unpacked_ratio. RocksDB's write
  buffers are not in JMX: set rocksdb_write_buffer_bytes and rocksdb_write_buffers of the endpoint if the application sets
  them. Stacks count 1 MiB per thread. Other off-heap memory (JNI, malloc arenas) is visible only in the host's memory,
  which needs the CloudWatch agent or node exporter. Live objects of a heap without a full collection are an upper bound.
  Processes that are not configured are not counted, and JVMs share a host only where instance_id is set. After a failure,
  stores are assumed to spread evenly. A small shared cache (tens of MiB) stays up to a seventh below its capacity,
  because of RocksDB's shards.
*/
-- Live objects: the maximum of the last days, because a process holds little after a start.
with live as materialized (
  select
    cluster,
    app,
    endpoint,
    -- A process that does not respond keeps its last application, or that of other processes with its name.
    coalesce(
      (array_agg(application_id order by hour desc) filter (where application_id is not null))[1],
      max(max(application_id)) over (partition by cluster, app),
      app
    ) as known_as,
    max(heap_used_after_gc_bytes) as heap_live_bytes,
    count(heap_used_after_gc_bytes) as heap_live_known_hours,
    min(min(hour) filter (where samples is not null)) over (partition by cluster, app) as known_since
  from metrics.jvm_app_hourly
  where hour > :hour - make_interval(days => :live_days) and hour <= :hour
  group by cluster, app, endpoint
),

-- Growth of RocksDB's maximum from one half-day to the next, within the current run of the process.
pace as materialized (
  select
    a.cluster,
    a.endpoint,
    (
      max(b.rocksdb_measured_bytes)
      - max(b.rocksdb_measured_bytes) filter (where b.hour <= a.hour - interval '12 hours')
    ) / 12 as bytes_per_hour
  from metrics.jvm_app_hourly as a
  inner join metrics.jvm_app_hourly as b
    on
      a.cluster = b.cluster and a.endpoint = b.endpoint
      and public.is_same_start(a.process_started_at, b.process_started_at)
      and b.hour > :hour - interval '24 hours' and b.hour <= :hour
  where a.hour = :hour
  group by a.cluster, a.endpoint
),

process as (
  select
    *,
    total_bytes + growth_bytes as after_failure_bytes,
    host_total_bytes + host_growth_bytes as host_after_failure_bytes,
    greatest(100 * total_bytes / limit_bytes, 100 * host_total_bytes / host_memory_bytes) as filled_percent,
    greatest(100 * most_bytes / limit_bytes, 100 * host_most_bytes / host_memory_bytes) as most_percent,
    -- Container or host, whichever is fuller.
    case
      when host_total_bytes / host_memory_bytes > total_bytes / limit_bytes then host_memory_bytes
      else limit_bytes
    end as memory_bytes,
    greatest(
      :heap_floor_bytes,
      ceil(:heap_headroom_ratio * coalesce(heap_live_bytes, heap_max_bytes) / :heap_step_bytes) * :heap_step_bytes
    ) as heap_wanted_bytes,
    greatest(100 * taken_bytes / limit_bytes, 100 * host_taken_bytes / host_memory_bytes) as taken_percent,
    100 * heap_survived_bytes / heap_max_bytes as heap_after_gc_percent,
    coalesce(heap_used_after_gc_bytes, heap_used_bytes) as heap_left_bytes,
    -- Relative to a whole hour, because the first minutes of a process are warm-up.
    100 * gc_seconds / greatest(covered_seconds, 3600) as paused_percent
  from (select * from metrics.jvm_app_hourly where hour = :hour) as a
  inner join metrics.process_memory(
    :hour, :measured_days, :still_ratio, :data_days, :paced_days, :ahead_days, :unpacked_ratio
  ) using (cluster, endpoint)
  left join metrics.growth_on_failure(
    :hour, :measured_days, :still_ratio, :data_days, :paced_days, :ahead_days, :unpacked_ratio
  ) using (cluster, endpoint)
  left join live using (cluster, app, endpoint)
  left join pace using (cluster, endpoint)
),

evaluated as (
  select
    *,
    total_bytes is not null and filled_percent > :heavy_percent as is_overcommitted,
    taken_bytes is not null and taken_percent > :heavy_percent as is_over_budget,
    greatest(100 * after_failure_bytes / limit_bytes, 100 * host_after_failure_bytes / host_memory_bytes)
    > :failure_percent as is_over_budget_after_failure,
    -- A new application's RocksDB is known by its configuration alone, which bounds it from above.
    is_settled or known_since <= :hour - make_interval(secs => :measured_days * 86400) as is_measured,
    most_percent <= :heavy_percent and most_bytes is not null and (instance_id is null or host_most_bytes is not null)
      as is_sure_to_fit,
    least(heap_max_bytes, heap_wanted_bytes) as heap_to_set_bytes,
    coalesce(unreported_stores > 0, true) as are_stores_unreported,
    -- Other JVMs on the host do not count against a container's own limit.
    case when memory_bytes = host_memory_bytes then other_jvms_bytes else 0 end as co_located_bytes,
    -- The number of stores that fit after a failure.
    floor((limit_bytes * :failure_percent / 100 - total_bytes) / nullif(bytes_per_store, 0) + coalesce(store_instances, 0))
      as stores_that_fit
  from process
),

classified as (
  select
    *,
    case
      when oom_killed_at is not null and is_over_budget is not true then 'oom_killed'
      when samples is null then 'no_response'
      when is_over_budget and heap_max_bytes >= :split_ratio * heap_live_bytes and off_heap_bytes > 0 then 'heap_oversized'
      when is_over_budget then 'over_budget'
      when system_memory_used_percent > :heavy_percent then 'host_memory_full'
      when is_overcommitted then 'overcommitted'
      when is_over_budget_after_failure and is_measured then 'over_budget_after_failure'
      when heap_after_gc_percent > :pressure_percent then 'heap_full'
      when paused_percent > :gc_percent then 'gc_overhead'
      when is_over_budget_after_failure then 'failure_not_measured'
      when is_sure_to_fit and is_unknown then 'failure_unknown'
      -- Heap after collections is unknown, or known only as an upper bound above the limit.
      when is_sure_to_fit and heap_survived_bytes is null and (100 * heap_left_bytes / heap_max_bytes <= :pressure_percent) is not true
        then 'heap_unknown'
      when is_sure_to_fit then 'fits'
      when limit_bytes is null then 'limit_unknown'
      when heap_max_bytes is not null and are_stores_unreported then 'stores_not_reported'
      when heap_max_bytes is null or off_heap_bytes is null then 'growth_unknown'
      when non_heap_used_bytes is null then 'non_heap_unknown'
      when most_bytes is null or 100 * most_bytes / limit_bytes > :heavy_percent then 'cache_sharing_unknown'
      else 'other_jvm_unknown'
    end as reason,
    -- Forecasts beyond 90 days are left out.
    case when hours_left between 0 and 24 * 90
      then :hour + interval '1 hour' * (1 + hours_left) end as fills_at
  from evaluated
  left join (
    select
      cluster, endpoint, pod_namespace as namespace, pod, pod_container as container, pod_workload as workload,
      pod_oom_kills as oom_kills, pod_oom_killed_at as oom_killed_at
    from inventory.pods(:hour)
  ) as of_pod using (cluster, endpoint)
  cross join lateral (
    select
      (
        memory_bytes * :heavy_percent / 100
        - case when memory_bytes = host_memory_bytes then host_taken_bytes else taken_bytes end
      ) / nullif(greatest(bytes_per_hour, 0), 0) as hours_left
  ) as forecast
),

-- The worst process represents its application: firing first, then not evaluated.
ranked as (
  select
    *,
    array_position(
      array[
        'heap_oversized', 'over_budget', 'oom_killed', 'host_memory_full', 'overcommitted', 'over_budget_after_failure', 'heap_full', 'gc_overhead'
      ],
      reason
    ) as rank
  from classified
),

verdict as (
  select
    *,
    count(*) over application as processes,
    count(rank) over application as affected_processes,
    bool_or(heap_after_gc_percent > :pressure_percent or paused_percent > :gc_percent) over application as is_heap_full,
    jsonb_agg(public.resource_key('process', cluster, endpoint)) filter (where rank is not null) over application as affected
  from ranked
  window application as (partition by cluster, known_as)
)

select distinct on (cluster, known_as)
  reason,
  cluster,
  known_as as application_id,
  affected,
  processes,
  affected_processes,
  coalesce(pod, instance_id, substring(endpoint from '://([^/]+)'), endpoint) as process,
  endpoint,
  app,
  instance_id,
  region,
  total_bytes as may_grow_to_bytes,
  most_bytes as at_most_bytes,
  memory_bytes,
  filled_percent,
  heap_max_bytes,
  heap_used_bytes,
  heap_used_after_gc_bytes,
  heap_left_bytes,
  heap_live_bytes,
  heap_live_known_hours,
  off_heap_bytes,
  rocksdb_measured_bytes as off_heap_measured_bytes,
  rocksdb_expected_bytes as off_heap_expected_bytes,
  rest_bytes,
  co_located_bytes as other_jvms_bytes,
  limit_bytes,
  taken_bytes,
  host_taken_bytes,
  host_used_bytes,
  host_memory_bytes,
  fills_at,
  is_settled as stores_settled,
  unreported_stores,
  are_stores_unreported,
  system_memory_used_percent,
  after_failure_bytes,
  host_after_failure_bytes,
  heap_after_gc_percent,
  is_heap_full,
  gc_seconds,
  paused_percent,
  heap_to_set_bytes,
  heap_wanted_bytes,
  heap_room_bytes,
  off_heap_room_bytes,
  memory_needed_bytes,
  case
    when heap_to_set_bytes < heap_max_bytes and heap_live_known_hours < :live_hours then 'measure_heap'
    when memory_needed_bytes <= memory_bytes then 'set_heap'
    when off_heap_room_bytes >= :cache_floor_bytes then 'share_cache'
    else 'add_memory'
  end as remedy,
  case
    when heap_live_known_hours >= :live_hours and heap_wanted_bytes > heap_max_bytes
      then case when heap_wanted_bytes <= heap_room_bytes then 'raise_heap' else 'add_memory' end
  end as heap_remedy,
  case
    when are_stores_unreported then 'report_stores'
    when host_taken_bytes >= host_used_bytes then 'shrink_jvms'
    else 'find_process'
  end as host_remedy,
  instances,
  case when is_over_budget_after_failure and stores_that_fit >= 1
    then greatest(ceil(stores / stores_that_fit) + 1, instances + 1) end as instances_needed,
  store_instances,
  rocksdb_shared_cache as shared_block_cache,
  substring(endpoint from ':([0-9]+)') as jmx_port,
  namespace,
  pod,
  container,
  workload,
  oom_kills,
  oom_killed_at
from verdict
-- A host that is no EC2 instance has no region.
left join (select distinct instance_id, region from inventory.instance_hourly where hour = :hour) as instance using (instance_id)
cross join lateral (
  select
    system_memory_used_percent * host_memory_bytes / 100 as host_used_bytes,
    memory_bytes * :heavy_percent / 100 - co_located_bytes - coalesce(off_heap_bytes, 0) - rest_bytes as heap_room_bytes,
    memory_bytes * :heavy_percent / 100 - co_located_bytes - heap_to_set_bytes - rest_bytes as off_heap_room_bytes,
    (heap_to_set_bytes + coalesce(off_heap_bytes, 0) + rest_bytes + co_located_bytes) * 100 / :heavy_percent
      as memory_needed_bytes
) as room
order by cluster asc, known_as asc, rank asc nulls last, reason = 'fits' asc, filled_percent desc nulls last, endpoint asc

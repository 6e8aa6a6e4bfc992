/*
title: Application crash loop
resource_kind: process
owner_role: application
maturity: stable
reads: [metrics.jvm_app_hourly, metrics.jvm_app_sample, inventory.pod_hourly]
params:
  lives: {default: 3, unit: runs, why: "two short runs are a deployment that was rolled back"}
  life_seconds:
    default: 5400
    unit: s
    why: "start times are sampled once an hour, so starts of runs under an hour appear at most this far apart"
  regular_seconds: {default: 180, unit: s, why: "a scheduler starts a job to the minute; crashes are irregular"}
  loop_starts: {default: 4, unit: starts, why: "within an hour: the process only starts, and its group only rebalances"}
  loop_regular_seconds:
    default: 10
    unit: s
    why: "a scheduler starts a job within seconds; the length of a run that ends in a crash varies by more"
key_metrics: [short_runs, shortest_run_seconds, last_heap_ratio, last_memory_ratio, process_started_at]
verdicts:
  crash_loop:
    status: firing
    severity: critical
    message: >
      Process {{ name }} is in a crash loop: {{ starts_in_hour | counted("start") }} within the hour (limit
      {{ loop_starts }}), the last at {{ process_started_at }}.
    details: &details
      - "{% if last_heap_ratio %}Heap in use after GC was {{ last_heap_ratio }} before the last short run ended.{% endif %}"
      - "{% if last_memory_ratio %}Resident memory was {{ last_memory_ratio }} of its limit before the last short run ended.{% endif %}"
      - >
        {% if exit_reason %}The last run of its container ended with {{ exit_reason }} (exit code {{ exit_code.value }}) at
        {{ exited_at }}.{% endif %}
    impact: >
      Each start restores state and rebalances the consumer group; its lag grows meanwhile.
    actions: &actions
      - "Stop the process or roll back its last deployment, so that its group stops rebalancing."
      - >
        {% if exit_reason == 'OOMKilled' %}Raise the memory limit of its container, or reduce its heap and RocksDB
        caches: it was OOM-killed.{% endif %}
      - >
        {% if last_memory_ratio >= 0.9 and not exit_reason %}Check whether the process was OOM-killed (dmesg, or
        OOMKilled in its pod's status).{% endif %}
      - "{% if last_heap_ratio >= 0.9 %}Search the application log for OutOfMemoryError: the heap was full.{% endif %}"
      - "Find the last exception in the application log: an uncaught exception, or a liveness probe that is too strict."
      - "Fix that cause, then start the process again."
    commands: &commands
      - "{% if pod %}kubectl -n {{ namespace }} logs {{ pod }} -c {{ container }} --previous --tail=50{% endif %}"
      - "{% if pod %}kubectl -n {{ namespace }} describe pod {{ pod }}{% endif %}"
      - "{% if workload %}kubectl -n {{ namespace }} rollout undo {{ workload }}{% endif %}"
      - "{% if not pod %}journalctl -u {{ app }} --since '24 hours ago' | grep -iE 'exception|outofmemory|killed' | tail -n 50{% endif %}"
  container_crash_loop:
    status: firing
    severity: critical
    message: >
      Container {{ container }} of pod {{ pod }} ({{ name }}) is in a crash loop:
      {{ container_restarts | counted("restart") }} in 24 h, now in back-off.
    details: *details
    impact: >
      The application runs without this process; the start of its container is delayed by up to 5 min each time.
    actions: *actions
    commands: *commands
  restarting:
    status: firing
    severity: warning
    message: >
      Process {{ name }} restarts repeatedly: {{ short_runs | counted("run") }} in 24 h lasted less than
      {{ life_seconds | span }} (limit {{ lives }} runs), last start {{ process_started_at }}.
    details: *details
    impact: >
      Each restart rebalances the consumer group and restores the state of the process; processing pauses meanwhile.
    actions: *actions
    commands: *commands
  scheduled: {status: ok, message: "Process {{ name }} starts on a schedule: {{ starts }} regular starts within 24 h."}
  recovered:
    status: ok
    message: >
      Process {{ name }} no longer restarts: after {{ short_runs | counted("short run") }} within 24 h, the current one has
      lasted since {{ process_started_at }}.
  steady: {status: ok, message: "Process {{ name }} is not in a crash loop: {{ starts | counted('start') }} within 24 h."}
  short_history:
    status: unknown
    message: "Not evaluated: process {{ name }} has only {{ known_hours | counted('hour') }} of metrics within the last 24 h."
  not_reported: {status: unknown, message: "Not evaluated: process {{ name }} did not report its start time."}
causes:
  dead_threads_stop_group: [crash_loop, container_crash_loop, restarting]
  restarts_stop_application: [crash_loop, container_crash_loop, restarting]
  restarts_rebalance_group: [crash_loop, container_crash_loop, restarting]
caused_by:
  memory_stops_threads: [crash_loop, container_crash_loop, restarting]
  full_heap_ends_threads: [crash_loop, container_crash_loop, restarting]
  growth_stops_process: [crash_loop, container_crash_loop, restarting]
  dead_threads_restart_process: [crash_loop, container_crash_loop, restarting]
  schema_drift_stops_threads: [crash_loop, container_crash_loop, restarting]
open_after_hours: 1
clear_after_hours: 6
description: |
  A process (one address) restarts repeatedly if at least `lives` of its runs within 24 hours ended within `life_seconds`,
  measured from one observed start to the next, until a run lasts longer. Runs of nearly equal length (within `regular_seconds`) are a schedule. A
  process is in a crash loop if the samples of one hour show `loop_starts` starts at irregular intervals
  (`loop_regular_seconds`).

  On Kubernetes, a container is in a crash loop if the kubelet delays its next start (CrashLoopBackOff) after at least
  `lives` restarts in 24 hours, whether or not its JVM responds.
runbook: |
  ## Meaning
  The process starts, runs for a short time, ends, and is started again by its supervisor.
  ## Impact
  Kafka Streams: each start rebalances the group; other processes take over the tasks and restore their state.
  ## Diagnosis
  1. What was highest before each run ended? The finding lists memory, heap, and threads of each run.
  2. Do all processes of the application restart? Then suspect a record, a schema, or a deployment.
  3. Does only this process restart? Then suspect its host: memory, disk, clock.
  ## Mitigation
  1. Roll back the last deployment, or stop the process until the cause is fixed.
  2. OOM-killed: raise the memory limit, or reduce heap and RocksDB caches.
  3. Uncaught exception: fix the record handling or the schema.
limitations: |
  Start times are sampled once an hour: several runs between two samples count as one. A crash loop is visible only where
  a Prometheus server has samples of the whole hour. Restored records of a run are known only if it was sampled during the
  restore. Processes that get a new address with each start (pods without a stable name) are not recognized as one.
  Crashes at regular intervals resemble a schedule.
*/
with sampled as (
  select
    *,
    -- Of starts that are one, the first.
    max(process_started_at) filter (where is_start) over (
      partition by cluster, endpoint order by process_started_at
    ) as started_at
  from (
    select
      *,
      public.is_same_start(
        process_started_at, lag(process_started_at) over (partition by cluster, endpoint order by process_started_at)
      ) is not true as is_start
    from metrics.jvm_app_hourly
    where hour > :hour - interval '24 hours' and hour <= :hour and process_started_at is not null
  ) as start
),

run as (
  select
    cluster,
    endpoint,
    started_at as process_started_at,
    count(*) as hours,
    (array_agg(heap_used_after_gc_bytes / nullif(heap_max_bytes, 0) order by hour desc))[1] as heap_ratio,
    (array_agg(resident_bytes / nullif(memory_limit_bytes, 0) order by hour desc))[1] as memory_ratio,
    (array_agg(threads order by hour desc))[1] as threads,
    max(resident_bytes / nullif(memory_limit_bytes, 0)) as highest_memory_ratio,
    max(records_to_restore) as records_to_restore
  from sampled
  group by cluster, endpoint, started_at
),

ended_run as (
  select
    run.*,
    lasted.seconds as run_seconds,
    lasted.seconds < :life_seconds as is_short
  from (
    select
      *,
      lead(process_started_at) over (partition by cluster, endpoint order by process_started_at) as next_started_at
    from run
  ) as run
  cross join lateral (
    select extract(epoch from run.next_started_at - run.process_started_at)::double precision as seconds
  ) as lasted
),

process as (
  select
    cluster,
    endpoint,
    sum(hours) as known_hours,
    count(*) filter (where process_started_at > :hour - interval '23 hours') as starts,
    count(*) filter (where is_short) as short_runs,
    min(run_seconds) as shortest_run_seconds,
    min(process_started_at) filter (where is_short) as first_short_at,
    max(next_started_at) filter (where is_short) as last_short_until,
    max(run_seconds) filter (where is_short) - min(run_seconds) <= :regular_seconds as is_regular,
    (array_agg(heap_ratio order by process_started_at desc) filter (where is_short))[1] as last_heap_ratio,
    (array_agg(memory_ratio order by process_started_at desc) filter (where is_short))[1] as last_memory_ratio,
    json_agg(
      json_build_object(
        'started_at', process_started_at, 'run_seconds', run_seconds, 'heap_ratio', heap_ratio, 'threads', threads,
        'highest_memory_ratio', highest_memory_ratio, 'records_to_restore', records_to_restore
      ) order by process_started_at
    ) filter (where is_short) as ended_runs
  from ended_run
  group by cluster, endpoint
),

hour_starts as (
  select
    cluster,
    endpoint,
    count(*) as starts,
    min(started_at) as first_started_at,
    max(started_at) as last_started_at,
    max(interval_seconds) - min(interval_seconds) <= :loop_regular_seconds as is_regular
  from (
    select
      *,
      extract(epoch from started_at - lag(started_at) over (partition by cluster, endpoint order by started_at))
        as interval_seconds
    from (
      select
        a.cluster,
        a.endpoint,
        s.process_started_at as started_at,
        public.is_same_start(
          s.process_started_at,
          lag(s.process_started_at) over (partition by a.cluster, a.endpoint order by s.process_started_at)
        ) is not true as is_start
      from metrics.jvm_app_hourly as a
      inner join metrics.jvm_app_sample as s using (hour, cluster, endpoint)
      where a.hour = :hour and s.metric = 'threads' and s.process_started_at >= a.hour
    ) as run_start
    where is_start
  ) as start_interval
  group by cluster, endpoint
)

select
  case
    when n.starts >= :loop_starts and not n.is_regular then 'crash_loop'
    when k.pod_is_in_back_off and k.pod_restarts_in_day >= :lives then 'container_crash_loop'
    when p.short_runs >= :lives and p.is_regular then 'scheduled'
    when p.short_runs >= :lives and a.process_started_at <= :hour + make_interval(secs => 3600 - :life_seconds)
      then 'recovered'
    when p.short_runs >= :lives then 'restarting'
    when a.process_started_at is null then 'not_reported'
    when p.known_hours <= :lives then 'short_history'
    else 'steady'
  end as reason,
  cluster,
  endpoint,
  a.app,
  p.starts,
  n.starts as starts_in_hour,
  p.short_runs,
  p.shortest_run_seconds,
  p.last_heap_ratio,
  p.last_memory_ratio,
  a.process_started_at,
  coalesce(p.known_hours, 0) as known_hours,
  case when n.starts >= :loop_starts or p.short_runs >= :lives then least(p.first_short_at, n.first_started_at) end
    as restarting_since,
  coalesce(n.last_started_at, p.last_short_until) as evidence_until,
  p.ended_runs,
  k.pod_namespace as namespace,
  k.pod,
  k.pod_container as container,
  k.pod_workload as workload,
  k.pod_restarts_in_day as container_restarts,
  k.pod_exit_reason as exit_reason,
  k.pod_exit_code as exit_code,
  k.pod_exited_at as exited_at
from metrics.jvm_app_hourly as a
left join process as p using (cluster, endpoint)
left join hour_starts as n using (cluster, endpoint)
left join inventory.pods(:hour) as k using (cluster, endpoint)
where a.hour = :hour

/*
title: Dead stream threads
resource_kind: process
owner_role: platform
maturity: stable
reads: [metrics.jvm_app_hourly, metrics.jvm_app_sample, metrics.consumer_group_hourly]
params:
  baseline_days: {default: 7, unit: d, why: "the most threads alive within a week is what the process was configured with"}
  settle_minutes: {default: 15, unit: min, why: "a process that has just started is still creating its threads"}
key_metrics: [alive_threads, baseline_threads, failed_threads, lag_seconds, process_started_at]
verdicts:
  none_alive:
    status: firing
    severity: critical
    message: "Process {{ name }} has no stream thread alive (baseline {{ baseline_threads }}); the process runs but processes nothing."
    details: &details
      - "{% if failed_threads %}{{ failed_threads | counted('stream thread') }} failed since {{ process_started_at }}.{% endif %}"
      - "{% if lag_seconds %}Consumer group {{ application_id }} is {{ lag_seconds }} behind.{% endif %}"
    impact: &impact "The lag of consumer group {{ application_id }} grows; unread records expire when retention ends."
    actions: &actions
      - "Find the exception that terminated the first stream thread in the log of the process."
      - "Restart the process after you fix that cause: a dead stream thread does not restart."
      - "Prevent it: handle transient errors with REPLACE_THREAD in the uncaught exception handler."
    commands: &commands
      - >
        kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --group {{ application_id }}
        --members --verbose
  some_dead:
    status: firing
    severity: warning
    message: "Process {{ name }} has {{ alive_threads | counted('stream thread') }} alive (baseline {{ baseline_threads }})."
    details: *details
    impact: "The remaining threads process all tasks of the process with less capacity; lag can grow at peak load."
    actions: *actions
    commands: *commands
  closed:
    status: firing
    severity: critical
    message: >
      Process {{ name }} runs, but its Kafka Streams client is closed:
      {{ previous_threads | counted("stream thread") }} disappeared from its metrics, and members left the group.
    details: *details
    impact: *impact
    actions: &restart
      - "Find the exception that closed the client: by default one uncaught exception of a stream thread closes it."
      - "Restart the process after you fix that cause."
    commands: *commands
  error:
    status: firing
    severity: critical
    message: "Process {{ name }} runs, but its Kafka Streams client is in state {{ streams_state }} and processes nothing."
    details: *details
    impact: *impact
    actions: *restart
    commands: *commands
  shutdown_stuck:
    status: firing
    severity: critical
    message: >
      Process {{ name }} runs, but its Kafka Streams client has been shutting down for over an hour (state
      {{ streams_state }}).
    details: *details
    impact: *impact
    actions:
      - "Take a thread dump first (`jcmd PID Thread.print`): it shows the blocked thread, for example one that waits for a database."
      - "Kill the process and start it again. With exactly-once, it then restores all its state."
      - "Prevent it: pass a timeout to close()."
    commands: *commands
  application_down:
    status: firing
    severity: critical
    message: >
      Application {{ application_id }} is down: no process responds, its group has no members, and {{ lag_records }} wait
      ({{ lag_growth_records }} more than an hour ago).
    details:
      - "{% if lag_seconds %}Consumer group {{ application_id }} is {{ lag_seconds }} behind.{% endif %}"
    impact: *impact
    actions:
      - "Start the application."
      - "Find out why it exited: check the last lines of its log, and the system log and memory of its host."
    commands: *commands
  replaced:
    status: firing
    severity: info
    message: >
      Process {{ name }} replaced {{ failed_threads | counted("failed stream thread") }} since {{ process_started_at }};
      {{ alive_threads }} are alive.
    impact: "Each replaced thread restores its state, and its tasks pause meanwhile."
    actions:
      - "Find the exception that terminated the threads in the log of the process, and fix its cause."
    commands: *commands
  all_alive: {status: ok, message: "Process {{ name }} has {{ alive_threads | counted('stream thread') }} alive and none failed."}
  scaled_down:
    status: ok
    message: >
      Process {{ name }} has {{ alive_threads | counted("stream thread") }} alive (baseline {{ baseline_threads }});
      failures do not explain the difference, so threads were removed.
  just_started: {status: ok, message: "Process {{ name }} started at {{ process_started_at }}."}
  running:
    status: ok
    message: >
      Process {{ name }} is in state {{ streams_state }} and its group has {{ members | counted("member") }}; the process
      does not report its thread count.
  never_started: {status: ok, message: "Process {{ name }} ran no stream thread in the last {{ baseline_days }}, and none failed."}
  no_response: {status: unknown, message: "Not evaluated: process {{ name }} did not respond over JMX."}
  not_reported: {status: unknown, message: "Not evaluated: process {{ name }} did not report its stream threads."}
  shutting_down:
    status: unknown
    message: "Not evaluated: the Kafka Streams client of process {{ name }} was shutting down (state {{ streams_state }})."
  short_history:
    status: unknown
    message: "Not evaluated: process {{ name }} has no baseline yet for its {{ alive_threads | counted('stream thread') }}."
    details:
      - "{% if failed_threads %}{{ failed_threads | counted('stream thread') }} failed since {{ process_started_at }}.{% endif %}"
causes:
  dead_threads_delay_records: [some_dead, none_alive, closed, error, shutdown_stuck]
  dead_threads_restart_process: [none_alive, closed, error, shutdown_stuck]
  dead_threads_stop_group: [none_alive, some_dead, closed, error, shutdown_stuck, application_down]
caused_by:
  memory_stops_threads: [application_down]
  growth_stops_process: [application_down]
  heap_growth_ends_threads: [none_alive, some_dead, closed, error, shutdown_stuck, replaced]
  full_heap_ends_threads: [none_alive, some_dead, closed, error, shutdown_stuck, replaced, application_down]
  restarts_stop_application: [application_down]
  schema_drift_stops_threads: [none_alive, some_dead, closed, error, shutdown_stuck, application_down]
open_after_hours: 1
clear_after_hours: 1
description: |
  The baseline is the most threads alive in any hour of the last `baseline_days`. Threads are dead if they are missing in every
  sample of the run and at least as many failed since the process started. If failures are not reported, threads missing
  since this process started are dead, unless the count has been stable for a day and the group has no lag.
  A closed client no longer reports metrics: a process that had threads since its start and reports none is closed if its
  group has no members, or fewer than an hour ago. If the client reports its state, ERROR and PENDING_ERROR fire whatever
  the thread count is; a shutdown fires if it was in progress an hour ago as well. A process that does not respond never
  fires on its own: its group must have no members and growing lag. One process then reports for the whole application.
runbook: |
  ## Meaning
  Stream threads of a Kafka Streams process ended, or its client is closed. The process itself may still run.
  ## Impact
  The tasks of dead threads move to other threads or are not processed at all. Lag grows.
  ## Diagnosis
  1. Search the log for "State transition from … to PENDING_SHUTDOWN" and for the exception before it.
  2. A poison-pill record ends the next thread as well. A schema change of a store does so during restore.
  3. Was a broker or the group coordinator unavailable for longer than the client's timeouts?
  4. Otherwise check for out-of-memory errors and exhausted file descriptors.
  ## Mitigation
  1. Fix the cause, or skip the record with a deserialization exception handler.
  2. Restart the process.
limitations: |
  Threads that end and are replaced between two runs are visible only in the failure count. Several KafkaStreams instances
  in one JVM count as the weakest of them. Failed threads that were also meant to be removed count as dead. The client state is
  available over Jolokia since Kafka 2.4, over RMI and Prometheus since 4.0; where only the state is reported, one dead
  thread among living ones is not detected.
*/
with history as (
  select
    cluster,
    endpoint,
    (array_agg(application_id order by hour desc) filter (where application_id is not null))[1] as application_id,
    max(stream_threads_alive) filter (where hour < :hour) as baseline,
    count(last_day_alive) >= 24 and min(last_day_alive) = max(last_day_alive) as is_steady,
    bool_or(streams_state in ('PENDING_SHUTDOWN', 'NOT_RUNNING') and hour = :hour - interval '1 hour')
      as was_shutting_down
  from metrics.jvm_app_hourly
  cross join lateral (
    select case when hour >= :hour - interval '24 hours' then stream_threads_alive end as last_day_alive
  ) as day
  where hour between :hour - make_interval(days => :baseline_days) and :hour
  group by cluster, endpoint
),

process as (
  select
    a.cluster,
    a.app,
    a.endpoint,
    a.instance_id,
    k.application_id,
    a.samples,
    a.process_started_at,
    a.stream_threads_failed as failed,
    a.streams_state,
    -- The best sample of the run counts: a thread missing there is missing in all of them.
    coalesce(s.most, a.stream_threads_alive) as alive,
    coalesce(s.at, a.hour + interval '1 hour') as sampled_at,
    k.baseline,
    own.baseline as process_baseline,
    k.is_steady,
    k.was_shutting_down
  from metrics.jvm_app_hourly as a
  inner join history as k on a.cluster = k.cluster and a.endpoint = k.endpoint
  left join lateral (
    select
      max(value) as most,
      max(at) as at
    from metrics.jvm_app_sample
    where hour = a.hour and cluster = a.cluster and app = a.app and endpoint = a.endpoint
    and metric = 'stream_threads_alive'
  ) as s on true
  left join lateral (
    select max(h.stream_threads_alive) as baseline
    from metrics.jvm_app_hourly as h
    where a.stream_threads_failed is null
    and h.hour >= a.hour - make_interval(days => :baseline_days) and h.hour < a.hour
    and h.cluster = a.cluster and h.app = a.app and h.endpoint = a.endpoint
    and public.is_same_start(h.process_started_at, a.process_started_at)
  ) as own on true
  where a.hour = :hour and k.application_id is not null
),

application as (
  select
    cluster,
    application_id,
    bool_and(samples is null) as has_no_response,
    min(endpoint) as first_endpoint
  from process
  group by cluster, application_id
),

evaluated as (
  select
    p.*,
    case
      when p.failed is null
        then p.alive < p.process_baseline and (p.is_steady and g.lag_records = 0) is not true
      else p.alive < p.baseline and p.failed >= p.baseline - p.alive
    end as has_dead,
    a.has_no_response as is_application_unresponsive,
    a.first_endpoint,
    g.members,
    g.members = 0 or g.members < before.members as has_fewer_members,
    g.lag_records,
    g.lag_seconds_max as lag_seconds,
    g.lag_records - before.lag_records as lag_growth_records
  from process as p
  inner join application as a on p.cluster = a.cluster and p.application_id = a.application_id
  left join metrics.consumer_group_hourly as g
    on g.hour = :hour and p.cluster = g.cluster and p.application_id = g.group_id
  left join metrics.consumer_group_hourly as before
    on before.hour = :hour - interval '1 hour' and p.cluster = before.cluster
    and p.application_id = before.group_id
)

select
  case
    when samples is null and is_application_unresponsive and first_endpoint = endpoint and members = 0 and lag_growth_records > 0
      then 'application_down'
    when samples is null then 'no_response'
    when process_started_at > sampled_at - make_interval(mins => :settle_minutes) then 'just_started'
    when streams_state in ('ERROR', 'PENDING_ERROR') then 'error'
    when streams_state in ('PENDING_SHUTDOWN', 'NOT_RUNNING')
      then case when was_shutting_down and process_started_at <= sampled_at - interval '1 hour' then 'shutdown_stuck' else 'shutting_down' end
    when alive is null and streams_state in ('RUNNING', 'REBALANCING') and members > 0 then 'running'
    when alive is null and process_baseline > 0 and has_fewer_members then 'closed'
    when alive is null then 'not_reported'
    when alive = 0 and greatest(baseline, failed) > 0 then 'none_alive'
    when baseline is null and (failed is null or failed > 0) then 'short_history'
    when alive = 0 then 'never_started'
    when has_dead then 'some_dead'
    when alive < baseline then 'scaled_down'
    when failed > 0 then 'replaced'
    else 'all_alive'
  end as reason,
  cluster,
  endpoint,
  app,
  application_id,
  instance_id,
  alive as alive_threads,
  baseline as baseline_threads,
  process_baseline as previous_threads,
  failed as failed_threads,
  streams_state,
  process_started_at,
  members,
  lag_seconds,
  lag_records,
  lag_growth_records
from evaluated

/*
title: Stream threads have died
resource_kind: process
owner_role: platform
maturity: stable
reads: [metrics.jvm_app_hourly, metrics.jvm_app_sample, metrics.consumer_group_hourly]
params:
  usual_days: {default: 7, unit: d, why: "the most that lived within a week is what the process was meant to have"}
  settle_minutes: {default: 15, unit: min, why: "a process that has just started is still making its threads"}
key_metrics: [alive_threads, usual_threads, failed_threads, lag_seconds, process_started_at]
verdicts:
  none_alive:
    status: firing
    severity: critical
    message: "None of its {{ usual_threads }} stream threads lives{% if failed_threads %}, {{ failed_threads }} have failed{% endif %}: the process runs and processes nothing{% if lag_seconds %}; the group is {{ lag_seconds }} behind{% endif %}."
    actions:
      - &cure "Look for the exception that ended the first thread, mend what it names, then restart the process: a thread that has died doesn't come back by itself. REPLACE_THREAD in the uncaught exception handler helps only against errors that pass."
    commands: &commands ["kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --group {{ application_id }} --members --verbose"]
  some_dead:
    status: firing
    severity: warning
    message: "{{ alive_threads }} of its {{ usual_threads }} stream threads live{% if failed_threads %}, {{ failed_threads }} have failed{% endif %}: the others carry their tasks{% if lag_seconds %}; the group is {{ lag_seconds }} behind{% endif %}."
    actions:
      - *cure
    commands: *commands
  closed:
    status: firing
    severity: critical
    message: "The process runs, but its Kafka Streams client is closed: none of the {{ threads_of_process | counted('stream thread') }} that it had is there any more, and members have left the group{% if lag_seconds %}; it is {{ lag_seconds }} behind{% endif %}."
    actions:
      - &ended "Look for the exception that ended it: unless a handler says otherwise, one that a stream thread doesn't catch closes the whole client. Mend what it names, then restart the process."
    commands: *commands
  error:
    status: firing
    severity: critical
    message: "The process runs, but its Kafka Streams client is in state {{ streams_state }} and processes nothing{% if lag_seconds %}; the group is {{ lag_seconds }} behind{% endif %}."
    actions:
      - *ended
    commands: *commands
  hangs:
    status: firing
    severity: critical
    message: "Its Kafka Streams client has been closing for an hour (state {{ streams_state }}), and the process still runs: it processes nothing{% if lag_seconds %}; the group is {{ lag_seconds }} behind{% endif %}."
    actions:
      - "Take a thread dump of the process (jcmd PID Thread.print): a stream thread that waits for something, such as a database, keeps the client from closing. Then end the process and start it anew; give close() a time-out."
    commands: *commands
  gone:
    status: firing
    severity: critical
    message: "The application is gone: none of its processes answers, its group has no members, and {{ lag_records }} wait, {{ lag_grown_records }} more than an hour before."
    actions:
      - "Start the application; then look why it ended: the machine's log, its memory, the last lines of its own log."
    commands: *commands
  replaced:
    status: firing
    severity: info
    message: "{{ failed_threads }} stream threads have failed since {{ process_started_at }} and were replaced; all {{ alive_threads }} live."
    actions:
      - "Look in the log for what ended them: what is replaced again and again restores its state each time."
  all_alive: {status: ok, message: "{{ alive_threads | counted('stream thread') }} live, none has failed."}
  fewer_on_purpose: {status: ok, message: "{{ alive_threads | counted('stream thread') }} live of {{ usual_threads }} in the days before, and failures don't explain it: they were taken away."}
  just_started: {status: ok, message: "The process started at {{ process_started_at }}."}
  works: {status: ok, message: "Its Kafka Streams client is in state {{ streams_state }} and its group has {{ members | counted('member') }}; how many of its threads live isn't told."}
  never_started: {status: ok, message: "The process has not run a stream thread within {{ usual_days }}, and none has failed."}
  silent: {status: unknown, message: "The process did not answer over JMX."}
  untold: {status: unknown, message: "The process did not tell its stream threads."}
  closing: {status: unknown, message: "Its Kafka Streams client was just closing (state {{ streams_state }}), as it does when the process ends."}
  short_history: {status: unknown, message: "{{ alive_threads | counted('thread') }} live{% if failed_threads %}, {{ failed_threads }} failed{% endif %}, and how many there were isn't known."}
causes:
  dead_threads_delay_records: [some_dead, none_alive, closed, error, hangs]
  dead_threads_stop_group: [none_alive, some_dead, closed, error, hangs, gone]
caused_by:
  memory_stops_threads: [gone]
  schema_drift_stops_threads: [none_alive, some_dead, closed, error, hangs, gone]
open_after_hours: 1
clear_after_hours: 1
description: |
  Usual is the most that lived in any hour of the last days. Dead are those missing in every sample of the run, if as many have
  failed since the process began. Where failures aren't told, those missing since this very process began, unless it has
  been so for a day and the group has no lag. A client that is closed takes its figures with it: a process that had threads
  since it began and tells of none is closed if its group has fewer members than an hour before, or none. Where the client tells its state,
  ERROR and PENDING_ERROR are alarms whatever is known of its threads; one that is closing is an alarm if it was so an hour
  before. A process that doesn't answer is never called dead for that alone: its group has to be without members while its
  lag grows; one process then speaks for all.
runbook: |
  1. The log of the process: "stream-thread … State transition from … to PENDING_SHUTDOWN", and the exception before it.
  2. A record that can't be read or processed: it kills the next thread as well. A schema change of a store does it on restore.
  3. A broker or coordinator that was away for longer than the time-outs: restart.
  4. Nothing of that: out of memory, or file handles.
limitations: |
  Deaths and replacements between two runs are seen only as a count. Several KafkaStreams instances in one JVM count as the
  weakest of them. Failed threads that were meant to be taken away as well look dead. A client tells its state over Jolokia since
  Kafka 2.4, over RMI and Prometheus since 4.0; where it tells that alone, one dead thread among living ones isn't seen.
*/
with known as (
  select
    cluster,
    endpoint,
    (array_agg(application_id order by hour desc) filter (where application_id is not null))[1] as application_id,
    max(stream_threads_alive) filter (where hour < :hour) as usual,
    count(of_day) >= 24 and min(of_day) = max(of_day) as is_steady,
    bool_or(streams_state in ('PENDING_SHUTDOWN', 'NOT_RUNNING') and hour = :hour - interval '1 hour')
      as was_closing
  from metrics.jvm_app_hourly
  cross join lateral (
    select case when hour >= :hour - interval '24 hours' then stream_threads_alive end as of_day
  ) as day
  where hour between :hour - make_interval(days => :usual_days) and :hour
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
    -- What lives in the best sample of the run: a thread that is missing there is missing in all.
    coalesce(s.most, a.stream_threads_alive) as alive,
    coalesce(s.at, a.hour + interval '1 hour') as seen_at,
    k.usual,
    own.usual as topic_baseline_process,
    k.is_steady,
    k.was_closing
  from metrics.jvm_app_hourly as a
  inner join known as k on a.cluster = k.cluster and a.endpoint = k.endpoint
  left join lateral (
    select
      max(value) as most,
      max(at) as at
    from metrics.jvm_app_sample
    where hour = a.hour and cluster = a.cluster and app = a.app and endpoint = a.endpoint
    and metric = 'stream_threads_alive'
  ) as s on true
  left join lateral (
    select max(h.stream_threads_alive) as usual
    from metrics.jvm_app_hourly as h
    where a.stream_threads_failed is null
    and h.hour >= a.hour - make_interval(days => :usual_days) and h.hour < a.hour
    and h.cluster = a.cluster and h.app = a.app and h.endpoint = a.endpoint
    and h.process_started_at = a.process_started_at
  ) as own on true
  where a.hour = :hour and k.application_id is not null
),

application as (
  select
    cluster,
    application_id,
    bool_and(samples is null) as is_silent,
    min(endpoint) as speaker
  from process
  group by cluster, application_id
),

judged as (
  select
    p.*,
    case
      when p.failed is null
        then p.alive < p.topic_baseline_process and (p.is_steady and g.lag_records = 0) is not true
      else p.alive < p.usual and p.failed >= p.usual - p.alive
    end as has_dead,
    a.is_silent as is_application_silent,
    a.speaker,
    g.members,
    g.members = 0 or g.members < before.members as has_fewer_members,
    g.lag_records,
    g.lag_seconds_max as lag_seconds,
    g.lag_records - before.lag_records as lag_grown_records
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
    when samples is null and is_application_silent and speaker = endpoint and members = 0 and lag_grown_records > 0
      then 'gone'
    when samples is null then 'silent'
    when process_started_at > seen_at - make_interval(mins => :settle_minutes) then 'just_started'
    when streams_state in ('ERROR', 'PENDING_ERROR') then 'error'
    when streams_state in ('PENDING_SHUTDOWN', 'NOT_RUNNING')
      then case when was_closing and process_started_at <= seen_at - interval '1 hour' then 'hangs' else 'closing' end
    when alive is null and streams_state in ('RUNNING', 'REBALANCING') and members > 0 then 'works'
    when alive is null and topic_baseline_process > 0 and has_fewer_members then 'closed'
    when alive is null then 'untold'
    when alive = 0 and greatest(usual, failed) > 0 then 'none_alive'
    when alive = 0 then 'never_started'
    when usual is null and (failed is null or failed > 0) then 'short_history'
    when has_dead then 'some_dead'
    when alive < usual then 'fewer_on_purpose'
    when failed > 0 then 'replaced'
    else 'all_alive'
  end as reason,
  cluster,
  endpoint,
  app,
  application_id,
  instance_id,
  alive as alive_threads,
  usual as usual_threads,
  topic_baseline_process as threads_of_process,
  failed as failed_threads,
  streams_state,
  process_started_at,
  members,
  lag_seconds,
  lag_records,
  lag_grown_records
from judged

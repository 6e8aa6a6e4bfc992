/*
title: A process is started again and again
resource_kind: process
owner_role: application
maturity: stable
reads: [metrics.jvm_app_hourly, metrics.jvm_app_sample]
params:
  lives: {default: 3, unit: lives, why: "two are a deploy that was taken back"}
  life_seconds: {default: 5400, unit: s, why: "a start is seen once an hour: those of lives of less than an hour lie so far apart at most"}
  regular_seconds: {default: 180, unit: s, why: "a schedule starts a job to the minute; a crash comes when it comes"}
  loop_starts: {default: 4, unit: starts, why: "in an hour: it does nothing but start, and its group nothing but rebalance"}
  loop_regular_seconds: {default: 10, unit: s, why: "a schedule starts a job within seconds; a life that a crash ends is some seconds longer or shorter each time"}
key_metrics: [short_lives, shortest_life_seconds, last_heap_ratio, last_memory_ratio, process_started_at]
verdicts:
  crash_loop:
    status: firing
    severity: critical
    message: "It was started {{ starts_in_hour }} times within the hour, the last time at {{ process_started_at }}: it does nothing but start.{% if last_heap_ratio %} Before its last end a collection left {{ last_heap_ratio }} of its heap in use.{% endif %}{% if last_memory_ratio %} It had {{ last_memory_ratio }} of its memory.{% endif %}"
    actions:
      - &cure "{% if last_memory_ratio >= 0.9 %}The kernel may have killed it: look for its memory first (dmesg, OOMKilled).{% elif last_heap_ratio >= 0.9 %}Its heap was full: look for OutOfMemoryError in its log.{% else %}Read the end of its log: an exception that no handler takes, or a health check that is too strict.{% endif %} Until it is mended stop it: each start restores its state anew."
    commands: &commands ["journalctl -u {{ app }} --since '24 hours ago' | grep -iE 'exception|outofmemory|killed' | tail -n 50"]
  restarting:
    status: firing
    severity: warning
    message: "It was started {{ starts }} times within 24 hours, {{ short_lives }} lives ended within {{ life_seconds }}; the last start was at {{ process_started_at }}.{% if last_heap_ratio %} Before its last end a collection left {{ last_heap_ratio }} of its heap in use.{% endif %}{% if last_memory_ratio %} It had {{ last_memory_ratio }} of its memory.{% endif %}"
    actions:
      - *cure
    commands: *commands
  scheduled: {status: ok, message: "It is started {{ starts }} times a day, to the minute: a schedule."}
  steady: {status: ok, message: "It was started {{ starts }} times within 24 hours, and lived."}
  short_history: {status: unknown, message: "It is known of only {{ known_hours }} of the last 24."}
  untold: {status: unknown, message: "It does not tell when it was started."}
causes:
  dead_threads_stop_group: [crash_loop, restarting]
  restarts_rebalance_group: [crash_loop, restarting]
caused_by:
  memory_stops_threads: [crash_loop, restarting]
  schema_drift_stops_threads: [crash_loop, restarting]
open_after_hours: 1
clear_after_hours: 6
description: |
  At least `lives` lives of a process (an address) ended within life_seconds, from one start that was seen to the next, in 24
  hours; unless the starts follow each other to regular_seconds. A crash loop: the samples of the hour show loop_starts
  starts in it, not as far apart as a schedule's.
runbook: |
  1. What was highest before it ended? Memory, heap and threads of each life stand in the finding.
  2. Does the whole application do so? Then it is what it reads, a record or a schema, or a deploy; else this machine.
  3. Kafka Streams: the group rebalances with each start, and the others take over its tasks and restore them.
limitations: |
  It is asked once an hour: several lives between two runs count as one, and a crash loop is seen only where a Prometheus
  server has the samples of all the hour. What a life restored is known as far as it was asked while it did. Processes that get another address with each start
  (pods without a stable name) aren't seen to be the same. Crashes at regular times look like a schedule.
*/
with life as (
  select
    cluster,
    endpoint,
    process_started_at,
    count(*) as hours,
    (array_agg(heap_used_after_gc_bytes / nullif(heap_max_bytes, 0) order by hour desc))[1] as heap_ratio,
    (array_agg(resident_bytes / nullif(memory_limit_bytes, 0) order by hour desc))[1] as memory_ratio,
    (array_agg(threads order by hour desc))[1] as threads,
    max(resident_bytes / nullif(memory_limit_bytes, 0)) as highest_memory_ratio,
    max(records_to_restore) as records_to_restore
  from metrics.jvm_app_hourly
  where hour > :hour - interval '24 hours' and hour <= :hour
  and process_started_at is not null
  group by cluster, endpoint, process_started_at
),

ended as (
  select
    life.*,
    lived.seconds as life_seconds,
    lived.seconds < :life_seconds as is_short
  from (
    select
      *,
      lead(process_started_at) over (partition by cluster, endpoint order by process_started_at) as next_started_at
    from life
  ) as life
  cross join lateral (
    select extract(epoch from life.next_started_at - life.process_started_at)::double precision as seconds
  ) as lived
),

process as (
  select
    cluster,
    endpoint,
    sum(hours) as known_hours,
    count(*) filter (where process_started_at > :hour - interval '23 hours') as starts,
    count(*) filter (where is_short) as short_lives,
    min(life_seconds) as shortest_life_seconds,
    max(life_seconds) filter (where is_short) - min(life_seconds) <= :regular_seconds as is_regular,
    (array_agg(heap_ratio order by process_started_at desc) filter (where is_short))[1] as last_heap_ratio,
    (array_agg(memory_ratio order by process_started_at desc) filter (where is_short))[1] as last_memory_ratio,
    json_agg(
      json_build_object(
        'started_at', process_started_at, 'life_seconds', life_seconds, 'heap_ratio', heap_ratio, 'threads', threads,
        'highest_memory_ratio', highest_memory_ratio, 'records_to_restore', records_to_restore
      ) order by process_started_at
    ) filter (where is_short) as ended_lives
  from ended
  group by cluster, endpoint
),

in_hour as (
  select
    cluster,
    endpoint,
    count(*) as starts,
    max(apart_seconds) - min(apart_seconds) <= :loop_regular_seconds as is_regular
  from (
    select
      *,
      extract(epoch from started_at - lag(started_at) over (partition by cluster, endpoint order by started_at))
        as apart_seconds
    from (
      select distinct
        a.cluster,
        a.endpoint,
        date_trunc('second', s.process_started_at) as started_at
      from metrics.jvm_app_hourly as a
      inner join metrics.jvm_app_sample as s using (hour, cluster, endpoint)
      where a.hour = :hour and s.metric = 'threads' and s.process_started_at >= a.hour
    ) as started
  ) as one
  group by cluster, endpoint
)

select
  case
    when n.starts >= :loop_starts and not n.is_regular then 'crash_loop'
    when p.short_lives >= :lives and p.is_regular then 'scheduled'
    when p.short_lives >= :lives then 'restarting'
    when a.process_started_at is null then 'untold'
    when p.known_hours <= :lives then 'short_history'
    else 'steady'
  end as reason,
  cluster,
  endpoint,
  a.app,
  p.starts,
  n.starts as starts_in_hour,
  p.short_lives,
  p.shortest_life_seconds,
  p.last_heap_ratio,
  p.last_memory_ratio,
  a.process_started_at,
  coalesce(p.known_hours, 0) as known_hours,
  p.ended_lives
from metrics.jvm_app_hourly as a
left join process as p using (cluster, endpoint)
left join in_hour as n using (cluster, endpoint)
where a.hour = :hour

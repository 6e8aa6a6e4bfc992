/*
title: Records wait for another system
resource_kind: application
owner_role: application
maturity: stable
reads: [metrics.jvm_app_hourly, metrics.node_hourly, metrics.volume_hourly, inventory.volume_hourly, metrics.consumer_group_hourly]
params:
  waiting_share: {default: 0.5, unit: ratio, why: "where less than half of a record's time is waiting, the record itself is what is dear"}
  ratio: {default: 3, unit: ratio, why: "of the usual time for a record; busy days double it"}
  least_ms: {default: 1, unit: ms, why: "Streams' clock ticks in milliseconds, and a call over a network hardly takes less"}
  least_records: {default: 1000, unit: records, why: "the mean of fewer is chance"}
  days: {default: 7, unit: d, why: "hours of all kinds; what has lasted for half of them is usual"}
  least_hours: {default: 24, unit: h, why: "a day has hours of all kinds"}
  full_cpu: {default: 0.8, unit: ratio, why: "threads wait for a processor where so much of them is in use"}
  throttled_share: {default: 0.1, unit: ratio, why: "a container that is stopped in one period of ten is short of CPU"}
  least_waiting: {default: 1, unit: threads, why: "on the mean of the readings; a thread that waits for a connection now and then is chance"}
  grown_seconds: {default: 300, unit: s, why: "within an hour; less is the time between two commits"}
key_metrics: [record_ms, usual_record_ms, waiting_ratio, cpu_ms, lag_seconds]
verdicts:
  waits:
    status: firing
    severity: info
    message: &reason "A record takes {{ record_ms }} of a stream thread{% if waits_since %} since {{ waits_since }}{% endif %}; {{ usual_record_ms }} is usual. For at least {{ waiting_ratio }} of that the thread waits: CPU explains at most {{ cpu_ms }} of it, garbage collections {{ gc_ms }}{% if is_kafka_known %}, brokers for which a producer waits {{ kafka_ms }}{% endif %}{% if has_stores and is_disk_known %}, disks {{ disk_ms }}{% endif %}.{% if threads_waiting %} On the mean {{ threads_waiting }} threads wait for a connection of its pools, and {{ pool_connections_in_use }} of their {{ pool_connections }} are in use.{% endif %}{% if is_lag_growing %} Its group is {{ lag_seconds }} behind, {{ lag_grown_seconds }} more than an hour before.{% endif %}"
    actions:
      - "Look at what it asks for each record, a database or a service: is that slower than it was, or asked only since then? Ask for many records at once, keep what was asked for in a cache, or bring it in as a topic and join that.{% if pool_connections > threads %} Its pools hold {{ pool_connections }} connections for {{ threads | counted('stream thread') }}, each of which uses one at a time: does each partition and processor open its own?{% endif %}{% if not is_kafka_known %} Its producers don't tell how long they wait for brokers: rule that out first.{% endif %}{% if has_stores and not is_disk_known %} It has stores, and how busy its disk is isn't known: rule that out first.{% endif %}{% if not is_cpu_known %} How full its processors are, or its container's limit, isn't known: rule that out first.{% endif %}"
  waits_for_connections:
    status: firing
    severity: info
    message: *reason
    actions:
      - "Its pools are too small for its threads, or what they do with a connection takes too long. Look at the slow calls first; then give the pools a connection for each stream thread, if the database bears as many of all its processes together."
  short_of_cpu: {status: unknown, message: "A record takes {{ record_ms }}, {{ usual_record_ms }} usually, but its threads wait for processors as well: {% if throttled_ratio >= throttled_share %}its container was stopped in {{ throttled_ratio }} of its CPU periods, as its limit was used up. Give it more CPU{% else %}{{ cpu_ratio }} of them are in use{% endif %}."}
  explained: {status: unknown, message: "A record takes {{ record_ms }}, {{ usual_record_ms }} usually. What is known may explain it: CPU {{ cpu_ms }}, garbage collections {{ gc_ms }}, brokers for which a producer waits {{ kafka_ms }}, disks {{ disk_ms }}."}
  restores: {status: unknown, message: "{{ restoring_processes | counted('process', 'processes') }} of it {{ 'restores' if restoring_processes == 1 else 'restore' }} state: what its CPU and its disk do isn't for its records.", is_not_applicable: true}
  short_history: {status: unknown, message: "A record takes {{ record_ms }}, and how long it usually takes isn't known: {{ known_hours | counted('hour') }} of {{ days }} are."}
  few: {status: unknown, message: "Only {{ records }} were processed in the hour: too few to judge."}
  untold: {status: unknown, message: "How many records it processes, how long one takes, or what CPU, collections and threads that costs isn't told{% if records %} of enough of its {{ records }}{% endif %}."}
  silent: {status: unknown, message: "{{ silent_processes }} of its {{ processes | counted('process', 'processes') }} did not answer over JMX."}
  works: {status: ok, message: "A record takes {{ record_ms }}, of which CPU explains at most {{ cpu_ms }}."}
  as_usual: {status: ok, message: "A record takes {{ record_ms }}, and {{ usual_record_ms }} is usual."}
causes:
  external_calls_slow_group: [waits, waits_for_connections]
  external_calls_delay_records: [waits, waits_for_connections]
open_after_hours: 2
clear_after_hours: 3
description: |
  Kafka Streams applications. The time for a record is that of its stream threads in process() (process-latency-avg, the mean of
  the last minute, without polls, commits and punctuations). From it is taken, by record, what else may fill it, each as much
  as it can be: the CPU time of the whole process (with what the hypervisor took, if the machine tells), the pauses of
  collections for each thread, the time for which threads wait for a producer's buffer or metadata, and, with stores, the time
  for which a disk of the machine was busy, for each thread. At least waiting_share must remain, and the time must be at least
  least_ms and ratio times the median of the hours of `days`. Not where processors are full, or the container is throttled.
runbook: |
  1. Since when, and what was deployed or changed then: here, and at what it asks?
  2. A thread dump (jcmd PID Thread.print) shows the call in which its StreamThreads stand.
  3. One look-up for each record makes the lag of all that comes behind it: batches, a cache, or a table beside the stream.
limitations: |
  Asynchronous look-ups overlap: a thread that waits for none isn't seen. What waits always is usual. CPU of the whole process
  hides waiting where it does more than process records. Stalled writes of RocksDB (told at recording level debug), locks and
  sleeps within the application count as waiting. CPU is of the hour, the time for a record of the minute after it. Containers
  that are throttled in bursts are known out of a Prometheus server with cAdvisor's figures only; pools are HikariCP's that tell
  (registerMbeans, or Micrometer), not by the JMX exporter. Disks are the busiest by node exporter, else EBS volumes: operations in flight.
*/
with machine as materialized (
  select
    instance_id,
    max(cpu_ratio) as cpu_ratio,
    max(cpu_ratio / nullif(cpu_ratio - steal_ratio, 0)) as stretch,
    max(busiest_disk_ratio) as disk_ratio
  from metrics.node_hourly
  where hour = :hour and instance_id is not null
  group by instance_id
),

-- As many operations as are in flight on the mean, a disk is busy at most.
disks as materialized (
  select
    i.instance_id,
    least(sum(v.queue_length_mean), 1) as disk_ratio
  from inventory.volume_hourly as i
  inner join metrics.volume_hourly as v using (hour, account, region, volume_id)
  where i.hour = :hour and i.instance_id is not null
  group by i.instance_id
  having count(*) = count(v.queue_length_mean)
),

process as materialized (
  select
    a.cluster,
    coalesce(
      a.application_id, case when a.samples is null then public.last_application_id(a.cluster, a.endpoint, a.hour) end
    ) as application_id,
    a.endpoint,
    a.samples,
    a.records_processed,
    a.stream_threads_alive as threads,
    a.store_instances > 0 as has_stores,
    coalesce(m.disk_ratio, d.disk_ratio) as disk_ratio,
    a.record_latency_ms * a.records_processed as taken_ms,
    a.cpu_seconds * 1000 * coalesce(m.stretch, 1) as cpu_ms,
    a.gc_seconds * 1000 * a.stream_threads_alive as gc_ms,
    a.producer_wait_seconds * 1000 as kafka_ms,
    case
      when a.store_instances > 0
        then a.covered_seconds * 1000 * a.stream_threads_alive * coalesce(m.disk_ratio, d.disk_ratio)
    end as disk_ms,
    greatest(a.cpu_ratio, a.system_cpu_ratio, m.cpu_ratio) as cpu_ratio,
    coalesce(a.system_cpu_ratio, a.throttled_ratio, m.cpu_ratio) is not null as is_cpu_known,
    a.throttled_ratio,
    a.pool_connections,
    a.pool_connections_in_use,
    a.pool_threads_waiting,
    a.records_processed > 0
    and num_nulls(a.record_latency_ms, a.cpu_seconds, a.gc_seconds, a.stream_threads_alive) = 0 as is_told
  from metrics.jvm_app_hourly as a
  left join machine as m using (instance_id)
  left join disks as d using (instance_id)
  where a.hour = :hour
),

application as materialized (
  select
    cluster,
    application_id,
    count(*) as processes,
    count(*) - count(samples) as silent_processes,
    sum(records_processed) as records,
    sum(records_processed) filter (where is_told) as told_records,
    sum(threads) filter (where is_told) as threads,
    sum(taken_ms) filter (where is_told) as taken_ms,
    sum(cpu_ms) filter (where is_told) as cpu_ms,
    sum(gc_ms) filter (where is_told) as gc_ms,
    coalesce(sum(kafka_ms) filter (where is_told), 0) as kafka_ms,
    coalesce(sum(disk_ms) filter (where is_told), 0) as disk_ms,
    bool_and(kafka_ms is not null) filter (where is_told) as is_kafka_known,
    coalesce(bool_or(has_stores) filter (where is_told), false) as has_stores,
    coalesce(bool_and(disk_ratio is not null) filter (where is_told and has_stores), false) as is_disk_known,
    max(cpu_ratio) filter (where is_told) as cpu_ratio,
    max(throttled_ratio) filter (where is_told) as throttled_ratio,
    bool_and(is_cpu_known) filter (where is_told) as is_cpu_known,
    sum(pool_connections) filter (where is_told) as pool_connections,
    sum(pool_connections_in_use) filter (where is_told) as pool_connections_in_use,
    sum(pool_threads_waiting) filter (where is_told) as threads_waiting
  from process
  where application_id is not null
  group by cluster, application_id
),

taken as materialized (
  select
    a.*,
    row_number() over () as number,
    a.taken_ms / a.told_records as record_ms,
    greatest(1 - (a.cpu_ms + a.gc_ms + a.kafka_ms + a.disk_ms) / nullif(a.taken_ms, 0), 0) as waiting_ratio,
    a.taken_ms >= :least_ms * a.told_records and a.taken_ms - a.cpu_ms >= :waiting_share * a.taken_ms as may_wait
  from application as a
),

-- Only where it may wait, what is usual is asked.
past as materialized (
  select
    t.number,
    h.hour,
    sum(h.record_latency_ms * h.records_processed) / sum(h.records_processed) as record_ms
  from taken as t
  inner join metrics.jvm_app_hourly as h using (cluster, application_id)
  where t.may_wait and t.told_records >= :least_records
  and h.hour >= :hour - make_interval(days => :days) and h.hour < :hour
  and h.records_processed > 0 and h.record_latency_ms is not null
  group by t.number, h.hour
),

usual as materialized (
  select
    number,
    count(*) as known_hours,
    percentile_cont(0.5) within group (order by record_ms) as record_ms
  from past
  group by number
),

since as (
  select
    u.number,
    max(p.hour) + interval '1 hour' as hour
  from usual as u
  inner join past as p using (number)
  where p.record_ms < :ratio * u.record_ms
  group by u.number
),

restoring as (
  select
    cluster,
    application_id,
    count(*) as processes
  from public.processes_restoring(:hour, :hour)
  group by cluster, application_id
),

judged as (
  select
    t.*,
    u.known_hours,
    u.record_ms as usual_record_ms,
    s.hour as waits_since,
    r.processes as restoring_processes,
    g.lag_seconds_max as lag_seconds,
    g.lag_seconds_max - before.lag_seconds_max as lag_grown_seconds,
    g.lag_seconds_max - before.lag_seconds_max >= :grown_seconds as is_lag_growing
  from taken as t
  left join usual as u using (number)
  left join since as s using (number)
  left join restoring as r using (cluster, application_id)
  left join metrics.consumer_group_hourly as g
    on g.hour = :hour and t.cluster = g.cluster and t.application_id = g.group_id
  left join metrics.consumer_group_hourly as before
    on before.hour = :hour - interval '1 hour' and t.cluster = before.cluster
    and t.application_id = before.group_id
)

select
  case
    when silent_processes = processes then 'silent'
    when records < :least_records then 'few'
    when told_records >= :least_records is not true then 'untold'
    when restoring_processes is not null then 'restores'
    when may_wait and known_hours >= :least_hours is not true then 'short_history'
    when may_wait and record_ms >= :ratio * usual_record_ms then case
      when cpu_ratio >= :full_cpu or throttled_ratio >= :throttled_share then 'short_of_cpu'
      when waiting_ratio < :waiting_share then 'explained'
      when threads_waiting >= :least_waiting then 'waits_for_connections'
      else 'waits'
    end
    when silent_processes > 0 then 'silent'
    when may_wait then 'as_usual'
    else 'works'
  end as reason,
  case when is_lag_growing then 'warning' end as severity,
  cluster,
  application_id,
  record_ms,
  usual_record_ms,
  waiting_ratio,
  cpu_ms / told_records as cpu_ms,
  gc_ms / told_records as gc_ms,
  kafka_ms / told_records as kafka_ms,
  disk_ms / told_records as disk_ms,
  waits_since,
  records,
  coalesce(known_hours, 0) as known_hours,
  threads,
  has_stores,
  is_kafka_known,
  is_disk_known,
  is_cpu_known,
  cpu_ratio,
  throttled_ratio,
  pool_connections,
  pool_connections_in_use,
  threads_waiting,
  lag_seconds,
  lag_grown_seconds,
  is_lag_growing,
  restoring_processes,
  processes,
  silent_processes
from judged

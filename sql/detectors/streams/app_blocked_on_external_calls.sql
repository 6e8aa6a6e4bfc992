/*
title: Processing blocked on external calls
resource_kind: application
owner_role: application
maturity: stable
is_mutation_tested: false
reads:
  - metrics.jvm_app_hourly
  - metrics.node_hourly
  - metrics.volume_hourly
  - inventory.volume_hourly
  - metrics.consumer_group_hourly
params:
  waiting_share: {default: 0.5, unit: ratio, why: "below half, processing of the record itself is the larger part"}
  ratio: {default: 3, unit: ratio, why: "of the baseline time per record; busy days double it"}
  least_ms: {default: 1, unit: ms, why: "Kafka Streams measures in milliseconds, and a network call rarely takes less"}
  least_records: {default: 1000, unit: records, why: "the mean of fewer records is not reliable"}
  days: {default: 7, unit: d, why: "covers a weekly cycle; a state that lasts for half of these hours becomes the baseline"}
  least_hours: {default: 24, unit: h, why: "a day covers the daily cycle"}
  full_cpu: {default: 0.8, unit: ratio, why: "above this use, threads wait for a processor"}
  throttled_share: {default: 0.1, unit: ratio, why: "a container throttled in one of ten periods is short of CPU"}
  least_waiting: {default: 1, unit: threads, why: "mean of all samples; an occasional wait for a connection is normal"}
  grown_seconds: {default: 300, unit: s, why: "lag growth within an hour; less is the time between two commits"}
key_metrics: [record_ms, baseline_record_ms, waiting_ratio, cpu_ms, lag_seconds]
verdicts:
  external_wait:
    status: firing
    severity: info
    message: &message >
      Application {{ name }} takes {{ record_ms }} of thread time per record (baseline {{ baseline_record_ms }}), at least
      {{ waiting_ratio }} of it waiting{% if slow_since %}, since {{ slow_since }}{% endif %}.
    details: &details
      - "CPU explains at most {{ cpu_ms }} of the time per record, and GC pauses {{ gc_ms }}."
      - "{% if is_kafka_known %}Producers that wait for brokers explain at most {{ kafka_ms }}.{% endif %}"
      - "{% if has_stores and is_disk_known %}Disk I/O explains at most {{ disk_ms }}.{% endif %}"
      - >
        {% if threads_waiting %}On average {{ threads_waiting | counted("thread") }} waited for a pooled connection;
        {{ pool_connections_in_use }} of {{ pool_connections }} connections were in use.{% endif %}
      - >
        {% if is_lag_growing %}Consumer group {{ application_id }} is {{ lag_seconds }} behind, {{ lag_growth_seconds }} more
        than an hour ago.{% endif %}
      - "{% if not is_kafka_known %}Not ruled out: waiting for brokers. The producers do not report it.{% endif %}"
      - "{% if has_stores and not is_disk_known %}Not ruled out: disk I/O. Disk utilization is not reported.{% endif %}"
      - "{% if not is_cpu_known %}Not ruled out: CPU saturation. CPU use or the container limit is not reported.{% endif %}"
    impact: "Stream threads process fewer records than they could; lag grows at peak load."
    actions:
      - "Check the latency of the database or service that is called for each record, and what was deployed since."
      - >
        {% if pool_connections > threads %}Check whether each partition opens a pool of its own:
        {{ pool_connections }} connections serve {{ threads | counted("stream thread") }}.{% endif %}
      - "Reduce the calls: request records in batches, or cache the responses."
      - "Prevent it: bring the external data in as a topic, and join that topic."
  connection_pool_exhausted:
    status: firing
    severity: info
    message: *message
    details: *details
    impact: "Stream threads wait for a free connection, and process fewer records than they could; lag grows at peak load."
    actions:
      - "Check for slow calls first: they keep connections occupied."
      - "Increase the pool to one connection per stream thread, if the database supports the total of all processes."
  cpu_saturated:
    status: unknown
    message: >
      Not evaluated: threads of {{ name }} wait for CPU as well ({{ record_ms }} per record, baseline
      {{ baseline_record_ms }}).
    details:
      - "{% if throttled_ratio >= throttled_share %}Its container was throttled in {{ throttled_ratio }} of CPU periods.{% endif %}"
      - "{% if cpu_ratio >= full_cpu %}CPU use was {{ cpu_ratio }}.{% endif %}"
    actions:
      - "{% if throttled_ratio >= throttled_share %}Raise the CPU limit of the container.{% endif %}"
  explained:
    status: unknown
    message: >
      Not evaluated: other causes may explain the {{ record_ms }} per record of {{ name }} (baseline
      {{ baseline_record_ms }}).
    details:
      - "CPU {{ cpu_ms }}, GC pauses {{ gc_ms }}, producers that wait for brokers {{ kafka_ms }}, disk I/O {{ disk_ms }}."
  restoring:
    status: unknown
    message: >
      Not applicable: {{ restoring_processes | counted("process", "processes") }} of {{ name }} restored state, which also
      uses CPU and disk.
    is_not_applicable: true
  short_history:
    status: unknown
    message: >
      Not evaluated: {{ name }} has no baseline yet for its {{ record_ms }} per record
      ({{ known_hours | counted("hour") }} of {{ days | counted("day") }} reported).
  too_few_records: {status: unknown, message: "Not evaluated: {{ name }} processed only {{ records }} within the hour."}
  not_reported:
    status: unknown
    message: "Not evaluated: {{ name }} did not report record count, record latency, CPU time, GC time, or thread count."
    details:
      - "{% if records %}Processes that report all of them do not cover enough of its {{ records }}.{% endif %}"
  no_response:
    status: unknown
    message: >
      Not evaluated: {{ unresponsive_processes }} of {{ processes | counted("process", "processes") }} of {{ name }} did not
      respond over JMX.
  not_waiting: {status: ok, message: "Application {{ name }} takes {{ record_ms }} per record, of which CPU explains up to {{ cpu_ms }}."}
  within_baseline: {status: ok, message: "Application {{ name }} takes {{ record_ms }} per record (baseline {{ baseline_record_ms }})."}
causes:
  external_calls_slow_group: [external_wait, connection_pool_exhausted]
  external_calls_delay_records: [external_wait, connection_pool_exhausted]
open_after_hours: 2
clear_after_hours: 3
description: |
  Evaluates Kafka Streams applications. Time per record is the time that stream threads spend in process()
  (process-latency-avg, the mean of the last minute, without polls, commits, and punctuations). Everything else that may
  fill it is subtracted, each at its maximum: CPU time of the whole process (with steal time, if the host reports it), GC
  pauses of each thread, waits of producers for buffers or metadata, and, for applications with stores, the time that a
  disk of the host was busy. At least `waiting_share` must remain, and the time must be at least `least_ms` and `ratio`
  times the median of the hours of `days`. Applications with saturated CPU or a throttled container are not evaluated.
runbook: |
  ## Meaning
  Stream threads spend most of their time waiting for something that is neither CPU, GC, Kafka, nor a local disk.
  ## Impact
  Each record delays all records behind it in its partition. Throughput falls, lag grows.
  ## Diagnosis
  1. What was deployed or changed when it began, in the application or in the system that it calls?
  2. A thread dump (`jcmd PID Thread.print`) shows the call in which the StreamThreads wait.
  ## Mitigation
  1. Restore the latency of the called system, or roll back the change.
  2. Use batches, a cache, or a table joined to the stream instead of one lookup per record.
limitations: |
  Asynchronous lookups overlap and are not detected. An application that always waits has that as its baseline. CPU time of
  the whole process hides waiting if the process does other work. Write stalls of RocksDB (reported at recording level debug
  only), locks, and sleeps inside the application count as waiting. CPU is measured over the hour, time per record over the
  last minute of it. Bursty throttling of containers is visible only with cAdvisor metrics from a Prometheus server. Pools
  are HikariCP pools that expose metrics (registerMbeans, or Micrometer), not over the JMX exporter. Disk utilization is that
  of the busiest disk (node exporter), else the I/O in flight of EBS volumes.
*/
with host as materialized (
  select
    instance_id,
    max(cpu_ratio) as cpu_ratio,
    max(cpu_ratio / nullif(cpu_ratio - steal_ratio, 0)) as steal_factor,
    max(busiest_disk_ratio) as disk_ratio
  from metrics.node_hourly
  where hour = :hour and instance_id is not null
  group by instance_id
),

-- The mean number of operations in flight is an upper bound of the share of time that a disk is busy.
volume_use as materialized (
  select
    u.cluster,
    u.endpoint,
    least(sum(v.queue_length_mean), 1) as disk_ratio
  from inventory.used_volumes(:hour) as u
  inner join metrics.volume_hourly as v
    on v.hour = :hour and u.account = v.account and u.region = v.region and u.volume_id = v.volume_id
  group by u.cluster, u.endpoint
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
    a.record_latency_ms * a.records_processed as thread_ms,
    a.cpu_seconds * 1000 * coalesce(m.steal_factor, 1) as cpu_ms,
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
    and num_nulls(a.record_latency_ms, a.cpu_seconds, a.gc_seconds, a.stream_threads_alive) = 0 as is_reported
  from metrics.jvm_app_hourly as a
  left join host as m using (instance_id)
  left join volume_use as d on a.cluster = d.cluster and a.endpoint = d.endpoint
  where a.hour = :hour
),

application as materialized (
  select
    cluster,
    application_id,
    count(*) as processes,
    count(*) - count(samples) as unresponsive_processes,
    sum(records_processed) as records,
    sum(records_processed) filter (where is_reported) as reported_records,
    sum(threads) filter (where is_reported) as threads,
    sum(thread_ms) filter (where is_reported) as thread_ms,
    sum(cpu_ms) filter (where is_reported) as cpu_ms,
    sum(gc_ms) filter (where is_reported) as gc_ms,
    coalesce(sum(kafka_ms) filter (where is_reported), 0) as kafka_ms,
    coalesce(sum(disk_ms) filter (where is_reported), 0) as disk_ms,
    bool_and(kafka_ms is not null) filter (where is_reported) as is_kafka_known,
    coalesce(bool_or(has_stores) filter (where is_reported), false) as has_stores,
    coalesce(bool_and(disk_ratio is not null) filter (where is_reported and has_stores), false) as is_disk_known,
    max(cpu_ratio) filter (where is_reported) as cpu_ratio,
    max(throttled_ratio) filter (where is_reported) as throttled_ratio,
    bool_and(is_cpu_known) filter (where is_reported) as is_cpu_known,
    sum(pool_connections) filter (where is_reported) as pool_connections,
    sum(pool_connections_in_use) filter (where is_reported) as pool_connections_in_use,
    sum(pool_threads_waiting) filter (where is_reported) as threads_waiting
  from process
  where application_id is not null
  group by cluster, application_id
),

record_time as materialized (
  select
    a.*,
    row_number() over () as number,
    a.thread_ms / a.reported_records as record_ms,
    greatest(1 - (a.cpu_ms + a.gc_ms + a.kafka_ms + a.disk_ms) / nullif(a.thread_ms, 0), 0) as waiting_ratio,
    a.thread_ms >= :least_ms * a.reported_records and a.thread_ms - a.cpu_ms >= :waiting_share * a.thread_ms as may_wait
  from application as a
),

-- A baseline is read only for applications that may be waiting: it costs the most.
past as materialized (
  select
    t.number,
    h.hour,
    sum(h.record_latency_ms * h.records_processed) / sum(h.records_processed) as record_ms
  from record_time as t
  inner join metrics.jvm_app_hourly as h using (cluster, application_id)
  where t.may_wait and t.reported_records >= :least_records
  and h.hour >= :hour - make_interval(days => :days) and h.hour < :hour
  and h.records_processed > 0 and h.record_latency_ms is not null
  group by t.number, h.hour
),

baseline as materialized (
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
  from baseline as u
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

evaluated as (
  select
    t.*,
    u.known_hours,
    u.record_ms as baseline_record_ms,
    s.hour as slow_since,
    r.processes as restoring_processes,
    g.lag_seconds_max as lag_seconds,
    g.lag_seconds_max - before.lag_seconds_max as lag_growth_seconds,
    g.lag_seconds_max - before.lag_seconds_max >= :grown_seconds as is_lag_growing
  from record_time as t
  left join baseline as u using (number)
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
    when unresponsive_processes = processes then 'no_response'
    when records < :least_records then 'too_few_records'
    when reported_records >= :least_records is not true then 'not_reported'
    when restoring_processes is not null then 'restoring'
    when may_wait and known_hours >= :least_hours is not true then 'short_history'
    when may_wait and record_ms >= :ratio * baseline_record_ms then case
      when cpu_ratio >= :full_cpu or throttled_ratio >= :throttled_share then 'cpu_saturated'
      when waiting_ratio < :waiting_share then 'explained'
      when threads_waiting >= :least_waiting then 'connection_pool_exhausted'
      else 'external_wait'
    end
    when unresponsive_processes > 0 then 'no_response'
    when may_wait then 'within_baseline'
    else 'not_waiting'
  end as reason,
  case when is_lag_growing then 'warning' end as severity,
  cluster,
  application_id,
  record_ms,
  baseline_record_ms,
  waiting_ratio,
  cpu_ms / reported_records as cpu_ms,
  gc_ms / reported_records as gc_ms,
  kafka_ms / reported_records as kafka_ms,
  disk_ms / reported_records as disk_ms,
  slow_since,
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
  lag_growth_seconds,
  is_lag_growing,
  restoring_processes,
  processes,
  unresponsive_processes
from evaluated

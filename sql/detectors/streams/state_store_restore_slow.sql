/*
title: Slow state restore
resource_kind: application
owner_role: application
maturity: stable
is_mutation_tested: false
reads:
  - metrics.jvm_app_hourly
  - metrics.state_store_memory_hourly
  - metrics.partition_hourly
  - metrics.replica_sample
  - inventory.topic_hourly
params:
  restore_seconds: {default: 600, unit: s, why: "tolerable pause of its tasks; give applications with a stricter target an exception"}
  reload_rate: {default: 50000, unit: records/s, why: "of each stream thread, if no restore of the application was observed"}
  rate_days: {default: 14, unit: d, why: "restore rates of the last two weeks predict the next one"}
  settled_hours: {default: 3, unit: h, why: "a warm-up task on another process counts as a standby for some minutes"}
  from_scratch_ratio: {default: 0.8, unit: ratio, why: "of the changelogs of its tasks; a process that kept its files restores only recent records"}
key_metrics: [failover_records, failover_seconds, process_restore_records_per_second, remaining_records, remaining_seconds]
verdicts:
  restoring:
    status: firing
    severity: warning
    message: >
      Process {{ endpoint }} of {{ name }} needs at least {{ remaining_seconds }} more to restore its state (limit
      {{ restore_seconds | span }}): {{ remaining_records }} at {{ restored_records_per_second }}.
    details: &details
      - "Its gauge of records to restore is {{ records_to_restore }}; records that compaction may have removed are not counted."
    impact: "Tasks of this process do not process records until their state is restored; their lag grows."
    actions:
      - "Do not restart the process: restored state may be lost."
      - "Prevent it: set num.standby.replicas=1, and put state.dir on storage that survives a restart."
    commands: &commands
      - >
        kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --group {{ application_id }}
        --members --verbose
  restoring_from_scratch:
    status: firing
    severity: warning
    message: >
      Process {{ endpoint }} of {{ name }} restarted at {{ process_started_at }} and restores all its state: at least
      {{ remaining_seconds }} more (limit {{ restore_seconds | span }}).
    details:
      - "Its state directory was lost or discarded: the process restarted on the same host."
      - "{{ remaining_records }} remain, at {{ restored_records_per_second }}."
      - "Its gauge of records to restore is {{ records_to_restore }}; records that compaction may have removed are not counted."
    impact: "Tasks of this process do not process records until their state is restored; their lag grows."
    actions:
      - "Do not restart the process: restored state may be lost."
      - "Put state.dir on storage that survives a restart (the default is below /tmp; a pod needs a persistent volume)."
      - "With exactly-once, stop processes by SIGTERM with enough time to close: a crash discards local state."
    commands: *commands
  slow_failover:
    status: firing
    severity: warning
    message: >
      Application {{ name }} needs at least {{ failover_seconds }} to restore state if host {{ host }} fails (limit
      {{ restore_seconds | span }}).
    details:
      - >
        {{ stores_without_standby | counted("store") }} without a standby: {{ failover_records }} are restored from
        changelogs{% if failover_bytes %} ({{ failover_bytes }}){% endif %}.
      - >
        {{ restoring_processes | counted("process", "processes") }} would restore at
        {{ process_restore_records_per_second }} each.
      - >
        {% if observed_restore_hours %}That rate was observed in {{ observed_restore_hours | counted("hour") }} of the last
        {{ rate_days | counted("day") }}.{% else %}That rate is assumed: no restore was observed in the last
        {{ rate_days | counted("day") }}.{% endif %}
    impact: "If the host fails, its tasks do not process records for that time."
    actions:
      - "{% if processes == restoring_processes %}Run the application on a second host as well.{% endif %}"
      - "Set num.standby.replicas=1: a standby has almost nothing to restore."
      - >
        Plan {{ standby_bytes }} of disk for the standbys{% if standby_memory_bytes %} and up to {{ standby_memory_bytes }} of
        memory{% endif %}, over all processes.
    commands: *commands
  fast_failover:
    status: ok
    message: "Application {{ name }} restores {{ failover_records }} in {{ failover_seconds }} if host {{ host }} fails."
  has_standbys: {status: ok, message: "Application {{ name }} has standbys or warm-up tasks for {{ stores | counted('store') }}."}
  stateless: {status: ok, message: "Application {{ name }} has no RocksDB store with a changelog."}
  no_response:
    status: unknown
    message: >
      Not evaluated: {{ unresponsive_processes }} of {{ processes | counted("process", "processes") }} of {{ name }} did not
      respond over JMX, and may hold standbys.
  topics_not_reported: {status: unknown, message: "Not evaluated: topics of the cluster of {{ name }} were not reported in this hour."}
  store_size_not_reported:
    status: unknown
    message: "Not evaluated: the number of records in stores of {{ name }}, or in their changelogs, was not reported."
  tasks_not_reported:
    status: unknown
    message: "Not evaluated: {{ name }} reported fewer tasks than its changelogs have partitions; other processes may exist."
open_after_hours: 1
clear_after_hours: 3
description: |
  In progress: the gauge of records to restore falls between the samples of a run, and the rest takes at least
  `restore_seconds` at that rate. The gauge counts offsets, some of which compaction has removed; as many as compaction may
  have removed from everything the process holds are subtracted. From scratch: the process started in this hour, at the same
  address on the same host, and has at least `from_scratch_ratio` of the offsets that it held an hour ago to restore.
  Before a failure: the host with the longest restore fails, the processes on other hosts share its tasks evenly (without
  other hosts, as many replacement processes take them), and that takes at least `restore_seconds` at the median rate of
  `rate_days`, else at `reload_rate` per thread. Records are the most keys that the stores held recently or a day ago, at
  most the offsets in their logs. A store has no standby if within `settled_hours` it never had more tasks than its changelog
  has partitions.
runbook: |
  ## Meaning
  A Kafka Streams application restores state stores from their changelogs, or would do so for long after a host failure.
  ## Impact
  Tasks do not process records until their stores are restored.
  ## Diagnosis
  1. Which stores are the largest? The finding lists them with the restore time of each.
  2. Did the process keep its state directory?
  ## Mitigation
  1. Add standbys (num.standby.replicas); the finding names the disk space and memory that they need.
  2. Reduce the state: a window, a TTL, cleanup.policy=compact,delete for windowed stores, more frequent compaction.
  3. Raise the restore rate: restore.consumer.* max.poll.records and fetch sizes, disk throughput, more threads.
limitations: |
  Key counts are estimates of RocksDB; additional records in the log, and an uneven distribution of records over partitions
  and processes, are not counted: the real restore takes longer. Files that a process still has on disk shorten it. A restore
  of a mostly compacted log is detected only at its start. In-memory stores, and stores restored from their source topic
  (topology optimization), are not reported over JMX. Standbys on the same host count as standbys. Before Kafka 3.5 no
  process reports its restores: rates are assumed.
*/
with process as materialized (
  select
    a.cluster,
    a.endpoint,
    known_application.application_id,
    coalesce(a.instance_id, substring(a.endpoint from '://([^/:]+)'), a.endpoint) as host,
    a.instance_id,
    a.samples,
    greatest(a.stream_threads_alive, 1) as threads,
    a.rocksdb_shared_cache,
    a.records_to_restore,
    a.restored_records_per_second,
    a.process_started_at
  from metrics.jvm_app_hourly as a
  cross join lateral (
    select
      coalesce(
        a.application_id, case when a.samples is null then public.last_application_id(a.cluster, a.endpoint, a.hour) end
      ) as application_id
  ) as known_application
  where a.hour = :hour and known_application.application_id is not null
),

application as (
  select
    p.*,
    r.hours as observed_restore_hours,
    coalesce(r.records_per_second, p.threads * :reload_rate) as records_per_second
  from (
    select
      cluster,
      application_id,
      count(*) as processes,
      count(*) - count(samples) as unresponsive_processes,
      avg(threads) as threads
    from process
    group by cluster, application_id
  ) as p
  left join public.restore_rates(:hour, cast(:rate_days as integer)) as r
    on p.cluster = r.cluster and p.application_id = r.application_id
),

-- One row per store and process.
process_store as materialized (
  select
    h.*,
    p.host,
    p.rocksdb_shared_cache,
    h.most_tasks <= h.partitions as has_no_standby
  from public.store_restores(:hour, cast(:settled_hours as integer)) as h
  inner join process as p on h.cluster = p.cluster and h.endpoint = p.endpoint
),

application_state as (
  select
    cluster,
    application_id,
    count(distinct store) as stores,
    count(distinct store) filter (where has_no_standby) as stores_without_standby,
    bool_or(coalesce(all_tasks, 0) < partitions) as has_missing_tasks,
    bool_or(has_no_standby and records_per_task is null) as has_unknown_size,
    bool_or(offsets_per_task is null) as has_unknown_log,
    sum(records_per_task * tasks) / nullif(
      sum(offsets_per_task * tasks) filter (where records_per_task is not null), 0
    ) as live_ratio,
    -- One standby of each store takes as much disk space again.
    sum(sst_bytes) filter (where has_no_standby) as standby_bytes,
    case
      when bool_and(rocksdb_shared_cache is not null) filter (where has_no_standby)
        then sum(case when rocksdb_shared_cache then 0 else expected_bytes end) filter (where has_no_standby)
    end as standby_memory_bytes
  from process_store
  group by cluster, application_id
),

host_store as (
  select
    cluster,
    application_id,
    host,
    store,
    has_no_standby,
    sum(tasks * records_per_task) as records,
    sum(tasks * bytes_per_task) as bytes
  from process_store
  where tasks is not null
  group by cluster, application_id, host, store, has_no_standby
),

-- The host with the longest restore, and the processes that take over its tasks: all on other hosts, else as many.
worst_host as (
  select distinct on (m.cluster, m.application_id)
    m.*,
    m.records / (takeover.processes * a.records_per_second) as seconds,
    takeover.processes,
    takeover.processes * a.records_per_second as records_per_second
  from (
    select
      cluster,
      application_id,
      host,
      sum(records) filter (where has_no_standby) as records,
      sum(bytes) filter (where has_no_standby) as bytes
    from host_store
    group by cluster, application_id, host
  ) as m
  inner join application as a on m.cluster = a.cluster and m.application_id = a.application_id
  cross join lateral (
    select count(*) as processes
    from process as p
    where p.cluster = m.cluster and p.application_id = m.application_id and p.host = m.host
  ) as own
  cross join lateral (
    select coalesce(nullif(a.processes - own.processes, 0), own.processes) as processes
  ) as takeover
  order by m.cluster asc, m.application_id asc, seconds desc nulls last, m.host asc
),

slowest_store as (
  select
    cluster,
    application_id,
    jsonb_agg(
      jsonb_build_object(
        'store', store, 'records', records, 'bytes', bytes, 'failover_seconds', seconds, 'has_standby', not has_no_standby
      ) order by seconds desc, store asc
    ) as stores
  from (
    select
      m.*,
      m.records / w.records_per_second as seconds,
      row_number() over (partition by m.cluster, m.application_id order by m.records desc nulls last, m.store asc) as place
    from host_store as m
    inner join worst_host as w on m.cluster = w.cluster and m.application_id = w.application_id and m.host = w.host
  ) as m
  where place <= 8
  group by cluster, application_id
),

-- Processes that restore now: a gauge that does not fall may be a remainder of the last restore. The gauge starts as
-- offsets and falls by records, or (since KAFKA-20711) by offsets. Everything that compaction can have removed is
-- subtracted, so that the estimate is rather too small than too large.
restoring as (
  select distinct on (p.cluster, p.application_id)
    p.cluster,
    p.application_id,
    p.endpoint,
    p.process_started_at,
    p.records_to_restore,
    p.restored_records_per_second,
    own.remaining_records,
    own.remaining_records / p.restored_records_per_second as seconds,
    -- Started since the last hour's sample, on the same host.
    p.records_to_restore >= :from_scratch_ratio * own.offsets_before and exists (
      select 1 from metrics.jvm_app_hourly as b
      where b.hour = :hour - interval '1 hour' and b.cluster = p.cluster and b.endpoint = p.endpoint
      and b.process_started_at < p.process_started_at
      and not public.is_same_start(b.process_started_at, p.process_started_at)
      and coalesce(b.instance_id, '') = coalesce(p.instance_id, '')
    ) as is_from_scratch
  from process as p
  inner join application_state as s on p.cluster = s.cluster and p.application_id = s.application_id
  cross join lateral (
    select
      p.records_to_restore - (1 - s.live_ratio) * sum(h.tasks * h.offsets_per_task) as remaining_records,
      sum(h.tasks_before * h.offsets_per_task) as offsets_before
    from process_store as h
    where h.cluster = p.cluster and h.endpoint = p.endpoint
  ) as own
  where p.restored_records_per_second is not null
  order by p.cluster asc, p.application_id asc, seconds desc nulls last, p.endpoint asc
)

select
  case
    when r.seconds >= :restore_seconds and r.is_from_scratch then 'restoring_from_scratch'
    when r.seconds >= :restore_seconds then 'restoring'
    when not exists (select from inventory.topic_hourly as t where t.hour = :hour and t.cluster = a.cluster)
      then 'topics_not_reported'
    when a.unresponsive_processes > 0 then 'no_response'
    when s.cluster is null then 'stateless'
    when w.seconds >= :restore_seconds and not s.has_missing_tasks then 'slow_failover'
    when s.has_missing_tasks then 'tasks_not_reported'
    when s.has_unknown_size or s.has_unknown_log and r.records_to_restore > 0 then 'store_size_not_reported'
    when s.stores_without_standby = 0 then 'has_standbys'
    else 'fast_failover'
  end as reason,
  a.cluster,
  a.application_id,
  w.host,
  w.records as failover_records,
  w.bytes as failover_bytes,
  w.seconds as failover_seconds,
  w.processes as restoring_processes,
  a.records_per_second as process_restore_records_per_second,
  a.observed_restore_hours,
  r.endpoint,
  r.process_started_at,
  r.records_to_restore,
  r.remaining_records,
  r.restored_records_per_second,
  r.seconds as remaining_seconds,
  s.standby_bytes,
  s.standby_memory_bytes,
  s.stores,
  s.stores_without_standby,
  a.processes,
  a.unresponsive_processes,
  m.stores as slowest_stores
from application as a
left join application_state as s on a.cluster = s.cluster and a.application_id = s.application_id
left join worst_host as w on a.cluster = w.cluster and a.application_id = w.application_id
left join slowest_store as m on a.cluster = m.cluster and a.application_id = m.application_id
left join restoring as r on a.cluster = r.cluster and a.application_id = r.application_id

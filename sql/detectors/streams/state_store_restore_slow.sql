/*
title: State takes too long to restore
resource_kind: application
owner_role: application
maturity: stable
reads: [metrics.jvm_app_hourly, metrics.state_store_memory_hourly, metrics.partition_hourly, metrics.replica_sample, inventory.topic_hourly]
params:
  restore_seconds: {default: 600, unit: s, why: "for so long its tasks may stand; an application with a stricter target has an exception of its own"}
  reload_rate: {default: 50000, unit: records/s, why: "of each stream thread, where the application was never seen restoring"}
  rate_days: {default: 14, unit: d, why: "as it restored in the last two weeks it will restore again"}
  settled_hours: {default: 3, unit: h, why: "a task that warms up on another process looks like a standby, for minutes"}
  anew_ratio: {default: 0.8, unit: ratio, why: "of what the changelogs hold of its tasks; who has kept its files restores only what came since"}
key_metrics: [to_read_anew_records, failover_seconds, each_process_restores_records_per_second, left_records, left_seconds]
verdicts:
  restores:
    status: firing
    severity: warning
    message: "The process {{ endpoint }} restores state, and tasks stand until theirs is there: at {{ restored_records_per_second }} that takes at least about {{ left_seconds }} more, for {{ left_records }}. Its gauge says {{ records_to_restore }}; those that compaction may have taken aren't counted."
    actions:
      - "Don't restart it: what it has restored may be lost. So that the next time is short: num.standby.replicas=1, and a state directory that outlives the process."
    commands: &commands ["kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --group {{ application_id }} --members --verbose"]
  restores_anew:
    status: firing
    severity: warning
    message: "The process {{ endpoint }} was started again at {{ process_started_at }}, where it was, and restores all that it had: its state directory was lost or discarded. At {{ restored_records_per_second }} that takes at least about {{ left_seconds }} more, for {{ left_records }}; until then tasks stand. Its gauge says {{ records_to_restore }}; those that compaction may have taken aren't counted."
    actions:
      - "Put state.dir on a volume that outlives the process (the default is below /tmp); a pod needs a volume of its own. With exactly-once a crash discards it as well: end the process by SIGTERM, with time to close."
    commands: *commands
  slow:
    status: firing
    severity: warning
    message: "If {{ machine }} dies, about {{ to_read_anew_records }} of {{ stores_without_standby | counted('store') }} without a standby are read anew from their changelogs{% if to_read_anew_bytes %} ({{ to_read_anew_bytes }}){% endif %}. That takes at least about {{ failover_seconds }}, at {{ each_process_restores_records_per_second }} in {% if restoring_processes == 1 %}one process{% else %}each of {{ restoring_processes }} processes{% endif %}{% if seen_restoring_hours %}, as it restored in {{ seen_restoring_hours | counted('hour') }} of the last {{ rate_days }}{% else %}; that rate is assumed, as it was not seen restoring within {{ rate_days }}{% endif %}. Until then tasks stand."
    actions:
      - "{% if processes == restoring_processes %}Run it on a second machine, with{% else %}Set{% endif %} num.standby.replicas=1: a standby has next to nothing to restore. It costs about {{ standby_bytes }} of disk{% if standby_memory_bytes %} and up to {{ standby_memory_bytes }} of memory{% endif %} over all processes, and reads the changelogs as they grow."
    commands: *commands
  quick: {status: ok, message: "If {{ machine }} dies, about {{ to_read_anew_records }} without a standby are read anew, in about {{ failover_seconds }}."}
  standbys: {status: ok, message: "All of its {{ stores | counted('store') }} {{ 'has' if stores == 1 else 'have' }} standbys, or are being warmed up elsewhere."}
  stateless: {status: ok, message: "No process tells of a store in RocksDB that has a changelog."}
  silent: {status: unknown, message: "{{ silent_processes }} of its {{ processes | counted('process', 'processes') }} did not answer over JMX: they may hold standbys."}
  unread: {status: unknown, message: "The topics of the cluster aren't known in this hour: which stores have changelogs, nobody can say."}
  unmeasured: {status: unknown, message: "How many records its stores hold isn't known."}
  unseen: {status: unknown, message: "Fewer tasks are seen than changelogs have partitions: others may hold the rest, and standbys."}
open_after_hours: 1
clear_after_hours: 3
description: |
  In progress: the gauge of a process falls between the samples of the run, and what is left takes restore_seconds or more at
  that rate. The gauge counts offsets, of which compaction has taken some; as many as it may have taken of all that the
  process holds are left out. All anew: it was started in this hour under the same address on the same machine, and has
  anew_ratio or more of the offsets to go of what it held the hour before.
  Before it happens: the machine whose death costs most time dies, the processes on other machines share its tasks evenly
  (where there are none, as many processes elsewhere take them), and that takes restore_seconds or more at the median rate of
  rate_days (else reload_rate for each thread). Records are the most keys that stores held lately or a day ago, at
  most the offsets of their logs. A store has no standby if in settled_hours its tasks were never more than its changelog's partitions.
runbook: |
  1. Which stores are the largest? They stand in the finding, each with the seconds that it takes of them.
  2. Standbys (num.standby.replicas) cost the disk and memory named, and restore next to nothing.
  3. Less state restores faster: a window, a TTL, cleanup.policy compact,delete for windowed stores, a larger share compacted.
  4. Restores are bound by fetches: restore.consumer.* max.poll.records and fetch sizes, the disk's throughput, more threads.
limitations: |
  Keys are RocksDB's estimate; what a log holds beyond them isn't counted, nor how unevenly records lie in partitions and
  tasks among processes: it takes longer than is said. Files that a process still has on disk shorten it. Of a log that is
  mostly compacted away a restore in progress is told only at its start. Stores in memory, and those that restore from
  their source topic (topology optimisation), aren't told by JMX. Standbys on the same machine count as standbys. Before
  Kafka 3.5 no process tells what it restores: rates are assumed.
*/
with process as materialized (
  select
    a.cluster,
    a.endpoint,
    whose.application_id,
    coalesce(a.instance_id, substring(a.endpoint from '://([^/:]+)'), a.endpoint) as machine,
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
  ) as whose
  where a.hour = :hour and whose.application_id is not null
),

restored as (
  select
    cluster,
    application_id,
    percentile_cont(0.5) within group (order by restored_records_per_second) as records_per_second,
    count(distinct hour) as hours
  from metrics.jvm_app_hourly
  where hour > :hour - make_interval(days => :rate_days) and hour <= :hour
  and restored_records_per_second is not null
  group by cluster, application_id
),

application as (
  select
    p.*,
    r.hours as seen_restoring_hours,
    coalesce(r.records_per_second, p.threads * :reload_rate) as records_per_second
  from (
    select
      cluster,
      application_id,
      count(*) as processes,
      count(*) - count(samples) as silent_processes,
      avg(threads) as threads
    from process
    group by cluster, application_id
  ) as p
  left join restored as r on p.cluster = r.cluster and p.application_id = r.application_id
),

-- By store and process.
held as materialized (
  select
    h.*,
    p.machine,
    p.rocksdb_shared_cache,
    h.most_tasks <= h.partitions as is_uncovered
  from public.store_restores(:hour, cast(:settled_hours as integer)) as h
  inner join process as p on h.cluster = p.cluster and h.endpoint = p.endpoint
),

stored as (
  select
    cluster,
    application_id,
    count(distinct store) as stores,
    count(distinct store) filter (where is_uncovered) as stores_without_standby,
    bool_or(coalesce(all_tasks, 0) < partitions) as is_unseen,
    bool_or(is_uncovered and records_per_task is null) as is_unmeasured,
    sum(records_per_task * tasks) / nullif(
      sum(offsets_per_task * tasks) filter (where records_per_task is not null), 0
    ) as live_ratio,
    -- What one standby of each takes: as much again.
    sum(sst_bytes) filter (where is_uncovered) as standby_bytes,
    case
      when bool_and(rocksdb_shared_cache is not null) filter (where is_uncovered)
        then sum(case when rocksdb_shared_cache then 0 else expected_bytes end) filter (where is_uncovered)
    end as standby_memory_bytes
  from held
  group by cluster, application_id
),

machine_store as (
  select
    cluster,
    application_id,
    machine,
    store,
    is_uncovered,
    sum(tasks * records_per_task) as records,
    sum(tasks * bytes_per_task) as bytes
  from held
  where tasks is not null
  group by cluster, application_id, machine, store, is_uncovered
),

-- The machine whose death costs most time, and who takes its tasks: all elsewhere, or as many in its place.
worst as (
  select distinct on (m.cluster, m.application_id)
    m.*,
    m.records / (taken.processes * a.records_per_second) as seconds,
    taken.processes,
    taken.processes * a.records_per_second as records_per_second
  from (
    select
      cluster,
      application_id,
      machine,
      sum(records) filter (where is_uncovered) as records,
      sum(bytes) filter (where is_uncovered) as bytes
    from machine_store
    group by cluster, application_id, machine
  ) as m
  inner join application as a on m.cluster = a.cluster and m.application_id = a.application_id
  inner join (
    select
      cluster,
      application_id,
      machine,
      count(*) as processes
    from process
    group by cluster, application_id, machine
  ) as own on m.cluster = own.cluster and m.application_id = own.application_id and m.machine = own.machine
  cross join lateral (
    select coalesce(nullif(a.processes - own.processes, 0), own.processes) as processes
  ) as taken
  order by m.cluster asc, m.application_id asc, seconds desc nulls last, m.machine asc
),

slowest as (
  select
    cluster,
    application_id,
    jsonb_agg(
      jsonb_build_object(
        'store', store, 'records', records, 'bytes', bytes, 'failover_seconds', seconds, 'has_standby', not is_uncovered
      ) order by seconds desc, store asc
    ) as stores
  from (
    select
      m.*,
      m.records / w.records_per_second as seconds,
      row_number() over (partition by m.cluster, m.application_id order by m.records desc nulls last, m.store asc) as place
    from machine_store as m
    inner join worst as w on m.cluster = w.cluster and m.application_id = w.application_id and m.machine = w.machine
  ) as m
  where place <= 8
  group by cluster, application_id
),

-- Who restores now: a gauge that stands may have stood since the last restore ended. It began as offsets and falls by
-- records, or (since KAFKA-20711) by offsets: less what compaction can have taken of all that a process holds, it is too
-- small rather than too large.
restoring as (
  select distinct on (p.cluster, p.application_id)
    p.cluster,
    p.application_id,
    p.endpoint,
    p.process_started_at,
    p.records_to_restore,
    p.restored_records_per_second,
    own.left_records,
    own.left_records / p.restored_records_per_second as seconds,
    -- Begun since it was asked an hour before, where it was.
    p.records_to_restore >= :anew_ratio * own.offsets_before and exists (
      select 1 from metrics.jvm_app_hourly as b
      where b.hour = :hour - interval '1 hour' and b.cluster = p.cluster and b.endpoint = p.endpoint
      and b.process_started_at < p.process_started_at
      and not public.is_same_start(b.process_started_at, p.process_started_at) and coalesce(b.instance_id, '') = coalesce(p.instance_id, '')
    ) as is_anew
  from process as p
  inner join stored as s on p.cluster = s.cluster and p.application_id = s.application_id
  cross join lateral (
    select
      p.records_to_restore - (1 - s.live_ratio) * sum(h.tasks * h.offsets_per_task) as left_records,
      sum(h.tasks_before * h.offsets_per_task) as offsets_before
    from held as h
    where h.cluster = p.cluster and h.endpoint = p.endpoint
  ) as own
  where p.restored_records_per_second is not null
  order by p.cluster asc, p.application_id asc, seconds desc nulls last, p.endpoint asc
),

read as (
  select distinct cluster
  from inventory.topic_hourly
  where hour = :hour
)

select
  case
    when r.seconds >= :restore_seconds and r.is_anew then 'restores_anew'
    when r.seconds >= :restore_seconds then 'restores'
    when t.cluster is null then 'unread'
    when a.silent_processes > 0 then 'silent'
    when s.cluster is null then 'stateless'
    when w.seconds >= :restore_seconds and not s.is_unseen then 'slow'
    when s.is_unseen then 'unseen'
    when s.is_unmeasured then 'unmeasured'
    when s.stores_without_standby = 0 then 'standbys'
    else 'quick'
  end as reason,
  a.cluster,
  a.application_id,
  w.machine,
  w.records as to_read_anew_records,
  w.bytes as to_read_anew_bytes,
  w.seconds as failover_seconds,
  w.processes as restoring_processes,
  a.records_per_second as each_process_restores_records_per_second,
  a.seen_restoring_hours,
  r.endpoint,
  r.process_started_at,
  r.records_to_restore,
  r.left_records,
  r.restored_records_per_second,
  r.seconds as left_seconds,
  s.standby_bytes,
  s.standby_memory_bytes,
  s.stores,
  s.stores_without_standby,
  a.processes,
  a.silent_processes,
  m.stores as slowest_stores
from application as a
left join read as t on a.cluster = t.cluster
left join stored as s on a.cluster = s.cluster and a.application_id = s.application_id
left join worst as w on a.cluster = w.cluster and a.application_id = w.application_id
left join slowest as m on a.cluster = m.cluster and a.application_id = m.application_id
left join restoring as r on a.cluster = r.cluster and a.application_id = r.application_id

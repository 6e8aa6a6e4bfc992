/*
title: State takes too long to restore
about: application
owner: application
maturity: stable
reads: [metrics.jvm_app_hourly, metrics.state_store_memory_hourly, metrics.partition_hourly, metrics.replica_sample, inventory.topic_hourly]
params:
  restore_seconds: {default: 600, unit: s, why: "for so long its tasks may stand; an application with a stricter target has an exception of its own"}
  reload_rate: {default: 50000, unit: records/s, why: "of each stream thread, where the application was never seen restoring"}
  rate_days: {default: 14, unit: d, why: "as it restored in the last two weeks it will restore again"}
  settled_hours: {default: 3, unit: h, why: "a task that warms up on another process looks like a standby, for minutes"}
  anew_ratio: {default: 0.8, unit: ratio, why: "of what the changelogs hold of its tasks; who has kept its files restores only what came since"}
convinces: [machine_records, failover_seconds, rate_records_per_second, records_to_restore, left_seconds]
says:
  restores:
    status: alarm
    severity: warning
    reason: &restores "{{ endpoint }} restores state, and its tasks stand until that is done: about {{ left_records }} or more are left of {{ records_to_restore | counted('offset') }}, at {{ left_rate_records_per_second }}{% if left_rate == 'assumed' %} (assumed: it was not seen restoring){% elif left_rate == 'past' %} (as before: in the seconds it was watched nothing was restored){% endif %} about {{ left_seconds }} or longer."
    cure: "Don't restart it: what it has restored may be lost. So that the next time is short: num.standby.replicas=1, and a state directory that outlives the process."
    commands: &commands ["kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --group {{ application_id }} --members --verbose"]
  restores_anew:
    status: alarm
    severity: warning
    reason: "{{ endpoint }} was started again at {{ process_started_at }} and restores all that it had, though it is where it was: about {{ left_records }} or more are left of {{ records_to_restore | counted('offset') }}, at {{ left_rate_records_per_second }}{% if left_rate == 'assumed' %} (assumed: it was not seen restoring){% elif left_rate == 'past' %} (as before: in the seconds it was watched nothing was restored){% endif %} about {{ left_seconds }} or longer. Its state directory was lost, or was discarded."
    cure: "Put state.dir on a volume that outlives the process (the default is below /tmp), and keep its place: a pod without a volume of its own begins empty. With exactly-once a crash discards it as well: let the process end by SIGTERM, with time to close."
    commands: *commands
  slow:
    status: alarm
    severity: warning
    reason: "If {{ machine }} dies, about {{ machine_records }} of {{ uncovered_stores | counted('store') }} without a standby{% if machine_bytes %}, {{ machine_bytes }} of changelogs,{% endif %} are read anew: about {{ failover_seconds }} or longer, at {{ rate_records_per_second }} in each of {{ restoring_processes | counted('process', 'processes') }} {% if rate_hours %}(so it restored in {{ rate_hours | counted('hour') }} of the last {{ rate_days }}){% else %}(assumed: it was not seen restoring within {{ rate_days }}){% endif %}. Until then these tasks stand."
    cure: "{% if processes == restoring_processes %}Run it on a second machine, with{% else %}Set{% endif %} num.standby.replicas=1: a standby takes over in seconds. It costs about {{ standby_bytes }} of disk{% if standby_memory_bytes %} and up to {{ standby_memory_bytes }} of memory{% endif %} over all processes, and reads the changelogs as they grow."
    commands: *commands
  restores_soon: {status: ok, reason: "It restores state: about {{ left_seconds }} are left."}
  quick: {status: ok, reason: "If {{ machine }} dies, about {{ machine_records }} without a standby are read anew, in about {{ failover_seconds }}."}
  standbys: {status: ok, reason: "All of its {{ stores | counted('store') }} {{ 'has' if stores == 1 else 'have' }} standbys, or are being warmed up elsewhere."}
  stateless: {status: ok, reason: "No process tells of a store in RocksDB that has a changelog."}
  silent: {status: skip, reason: "{{ silent_processes }} of its {{ processes | counted('process', 'processes') }} did not answer over JMX: they may hold standbys."}
  unread: {status: skip, reason: "The topics of the cluster aren't known in this hour: which stores have changelogs, nobody can say."}
  unmeasured: {status: skip, reason: "{% if records_to_restore %}It restores state, of {{ records_to_restore | counted('offset') }}; how{% else %}How{% endif %} many records its stores hold isn't known."}
  unseen: {status: skip, reason: "Fewer tasks are seen than changelogs have partitions: others may hold the rest, and standbys."}
open_after_hours: 1
clear_after_hours: 3
rule: |
  In progress: what a process has yet to restore, at the rate at which it does so now (else as it did in rate_days, else
  reload_rate for each thread), takes restore_seconds or more. Its gauge counts offsets, of which compaction has taken many:
  as large a part counts as the stores held keys within a day. All anew: it was started in this hour under the same
  address on the same machine, and its gauge is anew_ratio or more of the offsets of what it held the hour before.
  Before it happens: the machine that holds most records of stores without a standby dies, the processes on other machines
  share its tasks evenly (where there are none, as many processes elsewhere take them), and that takes restore_seconds or more. A
  store has no standby if in settled_hours its tasks were never more than its changelog's partitions.
runbook: |
  1. Which stores are the largest? They stand in the finding, each with the seconds that it takes of them.
  2. Standbys (num.standby.replicas) cost the disk and memory named, and are there within seconds.
  3. Less state restores faster: a window, a TTL, cleanup.policy compact,delete for windowed stores, a larger share compacted.
  4. Restores are bound by fetches: restore.consumer.* max.poll.records and fetch sizes, the disk's throughput, more threads.
blind_spots: |
  Keys are RocksDB's estimate, at most as many as the log has offsets; what a log holds beyond them isn't counted, nor how
  unevenly records lie in partitions and tasks among processes: it takes longer than is said. Files that a process still
  has on disk shorten it. Stores in memory, and those that restore from their source topic (topology optimisation),
  aren't told by JMX. Standbys on the same machine count as standbys. Before Kafka 3.5 no process tells what it restores.
*/
with known as (
  -- A process that is silent is still its application's.
  select
    cluster,
    endpoint,
    (array_agg(application_id order by hour desc) filter (where application_id is not null))[1] as application_id
  from metrics.jvm_app_hourly
  where hour > cast(:hour as timestamptz) - interval '24 hours' and hour <= cast(:hour as timestamptz)
  group by cluster, endpoint
),

process as materialized (
  select
    a.cluster,
    a.endpoint,
    k.application_id,
    coalesce(a.instance_id, substring(a.endpoint from '://([^/:]+)'), a.endpoint) as machine,
    a.samples,
    greatest(a.stream_threads_alive, 1) as threads,
    a.rocksdb_shared_cache,
    a.records_to_restore,
    a.restored_records_per_second,
    a.process_started_at,
    -- Begun since it was asked an hour before, where it was.
    a.process_started_at > b.process_started_at and coalesce(a.instance_id, '') = coalesce(b.instance_id, '')
      as is_restarted
  from metrics.jvm_app_hourly as a
  inner join known as k on a.cluster = k.cluster and a.endpoint = k.endpoint
  left join metrics.jvm_app_hourly as b
    on b.hour = a.hour - interval '1 hour' and a.cluster = b.cluster and a.endpoint = b.endpoint
  where a.hour = cast(:hour as timestamptz) and k.application_id is not null
),

restored as (
  select
    cluster,
    application_id,
    percentile_cont(0.5) within group (order by restored_records_per_second) as records_per_second,
    count(distinct hour) as hours
  from metrics.jvm_app_hourly
  where hour > cast(:hour as timestamptz) - make_interval(days => :rate_days) and hour <= cast(:hour as timestamptz)
  and restored_records_per_second is not null
  group by cluster, application_id
),

application as (
  select
    p.*,
    r.hours as rate_hours,
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

held as materialized (
  select
    p.cluster,
    p.application_id,
    p.endpoint,
    p.machine,
    p.rocksdb_shared_cache,
    m.hour,
    m.store,
    m.tasks,
    m.keys,
    m.sst_bytes,
    m.expected_bytes
  from metrics.state_store_memory_hourly as m
  inner join process as p on m.cluster = p.cluster and m.endpoint = p.endpoint
  where m.hour > cast(:hour as timestamptz) - interval '24 hours' and m.hour <= cast(:hour as timestamptz)
),

-- While a store is restored its keys are few: the most of a day counts.
sized as (
  select
    cluster,
    application_id,
    store,
    max(tasks) filter (where hour = cast(:hour as timestamptz)) as tasks,
    max(tasks) filter (where hour > cast(:hour as timestamptz) - make_interval(hours => :settled_hours)) as most_tasks,
    max(keys / tasks) as keys_per_task
  from (
    select
      cluster,
      application_id,
      store,
      hour,
      sum(tasks)::double precision as tasks,
      case when count(keys) = count(*) then sum(keys) end as keys
    from held
    group by cluster, application_id, store, hour
  ) as of_hour
  group by cluster, application_id, store
),

changelog as materialized (
  select
    s.cluster,
    s.application_id,
    s.store,
    s.most_tasks,
    s.tasks,
    s.keys_per_task,
    t.topic,
    t.partitions
  from sized as s
  inner join inventory.topic_hourly as t
    on s.cluster = t.cluster and s.application_id || '-' || s.store || '-changelog' = t.topic
  where t.hour = cast(:hour as timestamptz)
),

-- A store in the logs: what each of its tasks restores.
store as materialized (
  select
    c.*,
    l.offsets / c.partitions as offsets_per_task,
    case when c.keys_per_task is not null then least(c.keys_per_task, l.offsets / c.partitions) end as records_per_task,
    b.bytes_per_task,
    c.most_tasks <= c.partitions as is_uncovered
  from changelog as c
  left join (
    select
      cluster,
      topic,
      sum(log_end_offset - log_start_offset)::double precision as offsets
    from metrics.partition_hourly
    where hour = cast(:hour as timestamptz) and topic in (select topic from changelog)
    group by cluster, topic
    having count(log_end_offset) = count(*)
  ) as l on c.cluster = l.cluster and c.topic = l.topic
  left join (
    select
      cluster,
      topic,
      sum(size_bytes)::double precision / sum(replicas) as bytes_per_task
    from metrics.replica_sample
    where hour = cast(:hour as timestamptz) and not is_future and topic in (select topic from changelog)
    group by cluster, topic
  ) as b on c.cluster = b.cluster and c.topic = b.topic
),

stored as (
  select
    cluster,
    application_id,
    count(*) as stores,
    count(*) filter (where is_uncovered) as uncovered_stores,
    bool_or(coalesce(tasks, 0) < partitions) as is_unseen,
    bool_or(is_uncovered and records_per_task is null) as is_unmeasured,
    sum(records_per_task * partitions) / nullif(
      sum(offsets_per_task * partitions) filter (where records_per_task is not null), 0
    ) as live_ratio
  from store
  group by cluster, application_id
),

machine_store as (
  select
    h.cluster,
    h.application_id,
    h.machine,
    s.store,
    s.is_uncovered,
    sum(h.tasks) * s.records_per_task as records,
    sum(h.tasks) * s.bytes_per_task as bytes
  from held as h
  inner join store as s on h.cluster = s.cluster and h.application_id = s.application_id and h.store = s.store
  where h.hour = cast(:hour as timestamptz)
  group by h.cluster, h.application_id, h.machine, s.store, s.is_uncovered, s.records_per_task, s.bytes_per_task
),

-- The machine whose death costs most, and who takes its tasks: all elsewhere, or as many in its place.
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
  cross join lateral (
    select count(*) as processes
    from process as p
    where p.cluster = m.cluster and p.application_id = m.application_id and p.machine = m.machine
  ) as own
  cross join lateral (
    select case when a.processes > own.processes then a.processes - own.processes else own.processes end as processes
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

-- What one standby of each takes: as much again.
standby as (
  select
    h.cluster,
    h.application_id,
    sum(h.sst_bytes) as bytes,
    case
      when bool_and(h.rocksdb_shared_cache is not null)
        then sum(case when h.rocksdb_shared_cache then 0 else h.expected_bytes end)
    end as memory_bytes
  from held as h
  inner join store as s on h.cluster = s.cluster and h.application_id = s.application_id and h.store = s.store
  where h.hour = cast(:hour as timestamptz) and s.is_uncovered
  group by h.cluster, h.application_id
),

-- Who restores now, by the one that needs longest.
restoring as (
  select distinct on (p.cluster, p.application_id)
    p.cluster,
    p.application_id,
    p.endpoint,
    p.process_started_at,
    p.records_to_restore,
    p.records_to_restore * s.live_ratio as left_records,
    rate.records_per_second,
    rate.kind as rate,
    p.records_to_restore * s.live_ratio / rate.records_per_second as seconds,
    p.is_restarted and p.records_to_restore >= :anew_ratio * before.offsets as is_anew
  from process as p
  inner join application as a on p.cluster = a.cluster and p.application_id = a.application_id
  left join stored as s on p.cluster = s.cluster and p.application_id = s.application_id
  cross join lateral (
    select
      coalesce(
        p.restored_records_per_second,
        case when a.rate_hours is null then p.threads * :reload_rate else a.records_per_second end
      ) as records_per_second,
      case
        when p.restored_records_per_second is not null then 'now'
        when a.rate_hours is null then 'assumed'
        else 'past'
      end as kind
  ) as rate
  cross join lateral (
    select sum(h.tasks * c.offsets_per_task) as offsets
    from held as h
    inner join store as c on h.cluster = c.cluster and h.application_id = c.application_id and h.store = c.store
    where h.hour = cast(:hour as timestamptz) - interval '1 hour' and h.cluster = p.cluster and h.endpoint = p.endpoint
  ) as before
  where p.records_to_restore > 0
  order by p.cluster asc, p.application_id asc, seconds desc nulls last, p.endpoint asc
),

read as (
  select distinct cluster
  from inventory.topic_hourly
  where hour = cast(:hour as timestamptz)
)

select
  case
    when r.seconds >= :restore_seconds and r.is_anew then 'restores_anew'
    when r.seconds >= :restore_seconds then 'restores'
    when r.seconds is not null then 'restores_soon'
    when t.cluster is null then 'unread'
    when r.cluster is not null then 'unmeasured'
    when a.silent_processes > 0 then 'silent'
    when s.cluster is null then 'stateless'
    when w.seconds >= :restore_seconds and not s.is_unseen then 'slow'
    when s.is_unseen then 'unseen'
    when s.is_unmeasured then 'unmeasured'
    when s.uncovered_stores = 0 then 'standbys'
    else 'quick'
  end as because,
  a.cluster,
  a.application_id,
  w.machine,
  w.records as machine_records,
  w.bytes as machine_bytes,
  w.seconds as failover_seconds,
  w.processes as restoring_processes,
  a.records_per_second as rate_records_per_second,
  a.rate_hours,
  r.endpoint,
  r.process_started_at,
  r.records_to_restore,
  r.left_records,
  r.records_per_second as left_rate_records_per_second,
  r.rate as left_rate,
  r.seconds as left_seconds,
  c.bytes as standby_bytes,
  c.memory_bytes as standby_memory_bytes,
  s.stores,
  s.uncovered_stores,
  a.processes,
  a.silent_processes,
  m.stores as slowest_stores
from application as a
left join read as t on a.cluster = t.cluster
left join stored as s on a.cluster = s.cluster and a.application_id = s.application_id
left join worst as w on a.cluster = w.cluster and a.application_id = w.application_id
left join slowest as m on a.cluster = m.cluster and a.application_id = m.application_id
left join standby as c on a.cluster = c.cluster and a.application_id = c.application_id
left join restoring as r on a.cluster = r.cluster and a.application_id = r.application_id

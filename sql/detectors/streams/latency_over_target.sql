/*
title: Records take longer than they should
resource_kind: application
owner_role: application
maturity: stable
reads: [metrics.jvm_app_hourly, metrics.stream_node_hourly, metrics.consumer_partition_hourly, metrics.consumer_group_hourly, inventory.topic_hourly]
params:
  share: {default: 0.05, unit: ratio, why: "a target is what nearly all records keep: one reading in twenty may be above it"}
  least_readings: {default: 3, unit: readings, why: "one task's readings of a run; fewer are of one task that had a record or two"}
  ahead_seconds: {default: 1, unit: s, why: "clocks that are kept by NTP differ by less"}
  replay_hours: {default: 24, unit: h, why: "a group that is new, or went back, reads old records until it has caught up; after a day that is lag"}
key_metrics: [target_seconds, late_ratio, before_kafka_seconds, in_log_seconds, inside_seconds]
verdicts:
  in_log:
    status: firing
    severity: warning
    message: &reason "In {{ late_ratio }} of {{ readings | counted('reading') }}, each the mean of a task's last minute, records were older than {{ target_seconds }} {% if is_entrance %}already when {{ node }} took them in{% else %}when they came to the end of their way, {{ node }}{% endif %}{% if brought_seconds.value >= 1 %}, not counting the {{ brought_seconds }} that even the youngest brought along{% endif %}: {{ age_mean_seconds }} on the mean{% if age_max_seconds %}, {{ age_max_seconds }} at most{% endif %}. Of the mean at least {{ in_log_seconds }} passed in the log of {{ topic }}, at most {{ before_kafka_seconds }} otherwise before it was read (on the way into the log, being fetched, waiting for less than a commit), {{ inside_seconds }} in the application."
    actions:
      - "It reads {{ topic }} too late: at least {{ log_worst_seconds }} behind in its worst partition. More threads or members, up to the number of partitions; or make a record cheaper. Where one partition is late, look at its leader and at the member that owns it."
    commands: &commands ["kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --group {{ application_id }}"]
  taken_in_late:
    status: firing
    severity: warning
    message: *reason
    actions:
      - "Where they wait isn't certain: in the log of {{ topic }} between {{ in_log_seconds }} and {{ in_log_most_seconds }} of it, as {{ application_id }} commits seldom. A lag that stays between two commits says the log: more threads, or cheaper records. Else look at those who write {{ topic }}."
    commands: *commands
  inside:
    status: firing
    severity: warning
    message: *reason
    actions:
      - "{% if own_topic and own_worst_seconds.value >= inside_seconds.value / 2 %}It waits for itself: records stay at least {{ own_worst_seconds }} in its own topic {{ own_topic }}. More threads, or fewer repartitions.{% else %}Look for what holds a record up inside: calls to other systems, commit.interval.ms (caches give results on at a commit), punctuations, buffers.{% endif %}"
    commands: *commands
  before_kafka:
    status: firing
    severity: warning
    message: *reason
    actions:
      - "Records are late before the application can read them, though not all: look at linger.ms, retries and buffers of those who write {{ topic }}, at what they read themselves, and at fetch.max.wait.ms and fetch.min.bytes of the application."
  old_records: {status: unknown, message: "Records were older than {{ target_seconds }} in {{ raw_late_ratio }} of {{ readings | counted('reading') }}, but even the youngest of {{ brought_topic }} was {{ brought_seconds }} older than its time in the log explains: old timestamps, or a producer's clock that is behind."}
  clock_ahead: {status: unknown, message: "A record of {{ ahead_topic }} was {{ ahead_by_seconds }} younger than now: a producer's clock is ahead, and ages can't be judged."}
  replays: {status: unknown, message: "Its group {{ 'is new since' if is_new else 'went back at' }} {{ replays_since }} and hasn't caught up: it reads old records.", is_not_applicable: true}
  waits_for_windows: {status: ok, message: "In {{ late_ratio }} of {{ readings | counted('reading') }} records were older than {{ target_seconds }} when they came in, {{ age_mean_seconds }} on the mean. Behind that they may wait for the end of windows, or are suppressed until then: how long isn't judged."}
  few: {status: unknown, message: "Only {{ readings | counted('reading') }}: too few to judge."}
  idle: {status: unknown, message: "No process told of a record within the minute before it was asked: none came, or the client is older than Kafka 2.6."}
  sources_unknown: {status: unknown, message: "Which topics its nodes read isn't told: the client is older than Kafka 3.3."}
  lag_unknown: {status: unknown, message: "How long records stay in the log of what it reads isn't known."}
  silent: {status: unknown, message: "{{ silent_processes }} of its {{ processes | counted('process', 'processes') }} did not answer over JMX."}
  within: {status: ok, message: "In {{ late_ratio }} of {{ readings | counted('reading') }} records were older than {{ target_seconds }} at {{ node }}; {{ age_mean_seconds }} on the mean."}
caused_by:
  lag_delays_records: [in_log, taken_in_late]
  dead_threads_delay_records: [in_log, taken_in_late]
  external_calls_delay_records: [in_log, taken_in_late, inside]
open_after_hours: 2
clear_after_hours: 3
description: |
  Applications with a target (`latency_targets` in the config). A reading is the mean age of the records that came to a node of
  a task in the minute before. Of all nodes at which records end, the one with most readings above the target counts: they are
  more than `share`. Where a sub-topology aggregates windows or suppresses updates, records may wait there on purpose: the
  nodes count at which it takes records in. What records bring along is taken off first: what the youngest of a topic is
  older than its mean time in the log explains. That time is lag ÷ arriving records, less the usual time between two commits.
runbook: |
  1. Which part is the largest? In the log: is the group behind, one partition or all? Inside: what does a record wait for?
  2. In the log of its own topics counts as inside: a later sub-topology can be the slow one.
  3. Is the target right? Commits, caches and fetches take seconds by default.
limitations: |
  Means and maxima of tasks, no percentiles of records; of the minutes after the hour only. Delays in the log that are shorter
  than the usual time between two commits can't be told from old timestamps: where all records are so late, it is silent.
  Left and outer joins of streams hold unmatched records back until their window ends; that isn't told. Nor is who wrote
  late: an application upstream, or a producer. A target that matches no application says nothing.
*/
with process as materialized (
  select
    a.cluster,
    a.endpoint,
    coalesce(
      a.application_id, case when a.samples is null then public.last_application_id(a.cluster, a.endpoint, a.hour) end
    ) as application_id,
    a.samples
  from metrics.jvm_app_hourly as a
  where a.hour = :hour and exists (select 1 from detect.latency_target)
),

targeted as materialized (
  select
    p.*,
    t.target_seconds,
    dense_rank() over (order by p.cluster, p.application_id) as number
  from process as p
  cross join lateral (
    select detect.latency_target_of(public.resource_key('application', p.cluster, p.application_id)) as target_seconds
  ) as t
  where p.application_id is not null and t.target_seconds is not null
),

application as materialized (
  select
    number,
    cluster,
    application_id,
    target_seconds,
    count(*) as processes,
    count(*) - count(samples) as silent_processes
  from targeted
  group by number, cluster, application_id, target_seconds
),

node as materialized (
  select
    t.number,
    t.target_seconds,
    n.cluster,
    n.subtopology,
    n.node,
    n.topics,
    n.holds_back,
    n.readings,
    n.age_min_ms / 1000 as age_min_seconds,
    n.age_mean_ms / 1000 as age_mean_seconds,
    n.age_max_ms / 1000 as age_max_seconds,
    n.ages_ms
  from targeted as t
  inner join metrics.stream_node_hourly as n
    on n.hour = :hour and t.cluster = n.cluster and t.endpoint = n.endpoint
),

-- How long records wait in the log: at least, as what was read since the last commit counts as lag; and at most.
lag as materialized (
  select
    a.number,
    c.topic,
    avg(w.least_seconds) as least_seconds,
    avg(w.most_seconds) as most_seconds,
    max(w.least_seconds) as worst_seconds
  from metrics.consumer_partition_hourly as c
  inner join application as a on c.cluster = a.cluster and c.group_id = a.application_id
  cross join lateral (
    select case when c.lag_records = 0 then 0 else c.lag_records / nullif(c.arriving_per_second, 0) end as most_seconds
  ) as l
  cross join lateral (
    select
      l.most_seconds,
      greatest(l.most_seconds - c.commit_gap_p95_seconds, 0) as least_seconds
    where l.most_seconds = 0 or c.commit_gap_p95_seconds is not null
  ) as w
  where c.hour = :hour and w.most_seconds is not null
  group by a.number, c.topic
),

source as materialized (
  select
    n.number,
    n.subtopology,
    n.node,
    t.topic,
    coalesce(i.kind, 'plain') = 'repartition' as is_own,
    sum(n.age_mean_seconds * n.readings) / sum(n.readings) as age_mean_seconds,
    min(n.age_min_seconds) as age_min_seconds,
    l.least_seconds as log_seconds,
    l.most_seconds as log_most_seconds,
    l.worst_seconds as log_worst_seconds
  from node as n
  cross join lateral jsonb_array_elements_text(n.topics) as t (topic)
  left join inventory.topic_hourly as i
    on i.hour = :hour and n.cluster = i.cluster and t.topic = i.topic
  left join lag as l on n.number = l.number and t.topic = l.topic
  group by n.number, n.subtopology, n.node, t.topic, i.kind, l.least_seconds, l.most_seconds, l.worst_seconds
),

-- What an application takes in, and what that brings along.
entrance as materialized (
  select
    *,
    greatest(age_min_seconds - log_seconds, 0) as brought_seconds
  from source
  where not is_own
),

-- How a sub-topology gets its records: by its own entrances, else by all of the application.
way as materialized (
  select distinct on (n.number, n.subtopology)
    n.number,
    n.subtopology,
    e.topic,
    e.age_mean_seconds,
    least(e.log_seconds, e.age_mean_seconds) as log_seconds,
    least(e.log_most_seconds, e.age_mean_seconds) as log_most_seconds,
    e.log_worst_seconds,
    max(e.brought_seconds) over its as brought_seconds,
    first_value(e.topic) over (its order by e.brought_seconds desc, e.topic asc) as brought_topic
  from (
    select
      number,
      subtopology
    from node
    group by number, subtopology
  ) as n
  inner join entrance as e on n.number = e.number
  where n.subtopology = e.subtopology or not exists (
    select 1 from entrance as own where own.number = n.number and own.subtopology = n.subtopology
  )
  window its as (partition by n.number, n.subtopology)
  order by n.number asc, n.subtopology asc, e.age_mean_seconds desc, e.topic asc
),

-- Sub-topologies in which records wait for the end of windows, and those that get what such a one gives on.
waiting as materialized (
  select distinct
    number,
    subtopology
  from node
  where holds_back
),

after_waiting as materialized (
  select distinct
    s.number,
    s.subtopology
  from source as s
  inner join waiting as w on s.number = w.number
  where s.is_own
),

-- Where records end; in front of what holds them back, where they come in.
judged as materialized (
  select
    n.number,
    n.node,
    n.topics is not null as is_entrance,
    w.topic,
    w.age_mean_seconds as entrance_seconds,
    w.log_seconds,
    w.log_most_seconds,
    w.log_worst_seconds,
    w.brought_seconds,
    w.brought_topic,
    sum(n.readings) as readings,
    sum(n.age_mean_seconds * n.readings) / sum(n.readings) as age_mean_seconds,
    max(n.age_max_seconds) as age_max_seconds,
    sum(late.raw) / sum(n.readings) as raw_late_ratio,
    sum(late.own) / sum(n.readings) as late_ratio
  from node as n
  inner join way as w on n.number = w.number and n.subtopology = w.subtopology
  -- They are sorted: where the last is in time, all are.
  cross join lateral (
    select
      count(*) filter (where cast(age as double precision) > n.target_seconds * 1000) as raw,
      count(*) filter (where cast(age as double precision) > (n.target_seconds + w.brought_seconds) * 1000) as own
    from jsonb_array_elements(n.ages_ms) as age
    where cast(n.ages_ms -> -1 as double precision) > n.target_seconds * 1000
  ) as late
  where case
    when n.holds_back then (n.number, n.node) in (select e.number, e.node from entrance as e)
    else n.topics is null and (n.number, n.subtopology) not in (select a.number, a.subtopology from after_waiting as a)
  end
  group by
    n.number, n.node, n.topics is not null, w.topic, w.age_mean_seconds, w.log_seconds, w.log_most_seconds, w.log_worst_seconds,
    w.brought_seconds, w.brought_topic
),

worst as materialized (
  select distinct on (number)
    *,
    greatest(age_mean_seconds - entrance_seconds, 0) as inside_seconds,
    greatest(least(entrance_seconds, age_mean_seconds) - log_seconds, 0) as before_kafka_seconds,
    bool_and(is_entrance) over (partition by number) as only_entrances
  from judged
  order by number asc, late_ratio desc, raw_late_ratio desc, is_entrance asc, age_mean_seconds desc, node asc
),

own as (
  select distinct on (number)
    number,
    topic,
    log_worst_seconds
  from source
  where is_own
  order by number asc, log_worst_seconds desc nulls last, topic asc
),

told as (
  select
    number,
    bool_and(log_seconds is not null) as is_lag_known,
    min(age_min_seconds) as age_min_seconds,
    (array_agg(topic order by age_min_seconds asc, topic asc))[1] as youngest_topic
  from entrance
  group by number
),

-- Since when a group reads old records: it went back, or is new beside others; until it has caught up.
grouped as materialized (
  select
    g.cluster,
    g.group_id,
    min(g.hour) as first_hour,
    max(g.hour) filter (where g.status = 'rewind') as went_back
  from metrics.consumer_group_hourly as g
  where g.hour > :hour - make_interval(hours => :replay_hours) and g.hour <= :hour
  group by g.cluster, g.group_id
),

began as materialized (
  select
    a.number,
    a.cluster,
    a.application_id,
    a.target_seconds,
    coalesce(g.went_back, g.first_hour) as since,
    g.went_back is null as is_new
  from application as a
  inner join (
    select
      *,
      min(first_hour) over (partition by cluster) as clusters_first_hour
    from grouped
  ) as g on a.cluster = g.cluster and a.application_id = g.group_id
  where g.went_back is not null or g.first_hour > g.clusters_first_hour
),

replaying as (
  select b.*
  from began as b
  where not exists (
    select 1 from metrics.consumer_group_hourly as g
    where g.cluster = b.cluster and g.group_id = b.application_id
    and g.hour > b.since and g.hour <= :hour and g.lag_seconds_max <= b.target_seconds
  )
)

select
  case
    when a.silent_processes = a.processes then 'silent'
    when n.number is null then 'idle'
    when t.number is null then 'sources_unknown'
    when not t.is_lag_known then 'lag_unknown'
    when t.age_min_seconds < -:ahead_seconds then 'clock_ahead'
    when r.number is not null then 'replays'
    when w.number is null or w.readings < :least_readings then 'few'
    when w.late_ratio > :share then case
      when w.inside_seconds >= greatest(w.log_seconds, w.before_kafka_seconds) then 'inside'
      when w.log_seconds >= w.before_kafka_seconds then 'in_log'
      when w.log_most_seconds < w.entrance_seconds - w.log_most_seconds then 'before_kafka'
      else 'taken_in_late'
    end
    when w.raw_late_ratio > :share then 'old_records'
    when a.silent_processes > 0 then 'silent'
    when w.only_entrances then 'waits_for_windows'
    else 'within'
  end as reason,
  a.cluster,
  a.application_id,
  a.target_seconds,
  w.node,
  w.is_entrance,
  w.late_ratio,
  w.raw_late_ratio,
  coalesce(w.readings, 0) as readings,
  w.age_mean_seconds,
  w.age_max_seconds,
  w.before_kafka_seconds,
  w.log_seconds as in_log_seconds,
  w.log_most_seconds as in_log_most_seconds,
  w.inside_seconds,
  w.topic,
  w.log_worst_seconds,
  w.brought_seconds,
  w.brought_topic,
  o.topic as own_topic,
  o.log_worst_seconds as own_worst_seconds,
  t.youngest_topic as ahead_topic,
  -t.age_min_seconds as ahead_by_seconds,
  r.since as replays_since,
  r.is_new,
  a.processes,
  a.silent_processes
from application as a
left join (select distinct number from node) as n on a.number = n.number
left join told as t on a.number = t.number
left join worst as w on a.number = w.number
left join own as o on a.number = o.number
left join replaying as r on a.number = r.number

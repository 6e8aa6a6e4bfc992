/*
title: End-to-end latency above target
resource_kind: application
owner_role: application
maturity: stable
is_mutation_tested: false
reads:
  - metrics.jvm_app_hourly
  - metrics.stream_node_hourly
  - metrics.consumer_partition_hourly
  - metrics.consumer_group_hourly
  - inventory.topic_hourly
params:
  share: {default: 0.05, unit: ratio, why: "a target applies to nearly all records: one reading in twenty may exceed it"}
  least_readings: {default: 3, unit: readings, why: "readings of one task in one run; fewer come from a task with a record or two"}
  ahead_seconds: {default: 1, unit: s, why: "clocks synchronized by NTP differ by less"}
  replay_hours: {default: 24, unit: h, why: "a new or rewound group reads old records until it catches up; after a day that is lag"}
key_metrics: [target_seconds, late_ratio, before_kafka_seconds, in_log_seconds, in_application_seconds]
verdicts:
  in_log:
    status: firing
    severity: warning
    message: &message >
      Application {{ name }} exceeds its latency target of {{ target_seconds }} in {{ late_ratio }} of
      {{ readings | counted("reading") }} at node {{ node }}: records are {{ age_mean_seconds }} old on average.
    details: &details
      - >
        Of the average, records spent at least {{ in_log_seconds }} in the log of {{ topic }}, at most
        {{ before_kafka_seconds }} elsewhere before the read, and {{ in_application_seconds }} in the application.
      - "{% if age_max_seconds %}The oldest record was {{ age_max_seconds }} old.{% endif %}"
      - >
        {% if initial_age_seconds >= 1 %}Records of {{ initial_age_topic }} are at least {{ initial_age_seconds }} old when
        written; this is not counted as late.{% endif %}
      - "{% if is_source %}Measured where records enter, as they may wait for windows afterwards.{% endif %}"
    impact: "Results of the application are later than promised to its users."
    actions:
      - "Add stream threads or instances, up to the number of partitions of {{ topic }}."
      - "Check the leader and the consumer of the worst partition, which is at least {{ worst_partition_seconds }} behind."
      - "Reduce the processing time per record."
    commands: &commands
      - "kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --group {{ application_id }}"
  before_processing:
    status: firing
    severity: warning
    message: *message
    details: *details
    impact: "Results of the application are later than promised to its users."
    actions:
      - >
        Check the lag of {{ application_id }} between two commits: the log accounts for {{ in_log_seconds }} to
        {{ in_log_seconds_max }}, as commits are rare.
      - "If that lag persists, add stream threads or reduce the processing time per record."
      - "Otherwise check the producers of {{ topic }}: linger.ms, retries, and buffers."
    commands: *commands
  in_application:
    status: firing
    severity: warning
    message: *message
    details: *details
    impact: "Results of the application are later than promised to its users."
    actions:
      - >
        {% if internal_topic_seconds >= in_application_seconds.value / 2 %}Add stream threads, or remove repartitions: records wait at least
        {{ internal_topic_seconds }} in internal topic {{ internal_topic }}.{% endif %}
      - "Check for external calls, punctuators, and buffers that hold records back."
      - "Lower commit.interval.ms if caches delay results: cached results are forwarded at each commit."
    commands: *commands
  before_kafka:
    status: firing
    severity: warning
    message: *message
    details: *details
    impact: "Results of the application are later than promised to its users."
    actions:
      - "Check the producers of {{ topic }}: linger.ms, retries, buffers, and the latency of their own sources."
      - "Check fetch.max.wait.ms and fetch.min.bytes of the application."
  old_timestamps:
    status: unknown
    message: >
      Not evaluated: even the youngest records of {{ initial_age_topic }} are {{ initial_age_seconds }} old when written to
      the log.
    details:
      - "Records were older than {{ target_seconds }} in {{ raw_late_ratio }} of {{ readings | counted('reading') }}."
      - "Either their timestamps are old, or the clock of a producer is behind."
  producer_clock_ahead:
    status: unknown
    message: >
      Not evaluated: a record of {{ clock_ahead_topic }} has a timestamp {{ clock_ahead_seconds }} in the future; the clock of
      a producer is ahead.
  catching_up:
    status: unknown
    message: >
      Not applicable: group of {{ name }} reads old records since {{ catching_up_since }}, when it
      {{ "was created" if is_new else "was rewound" }}.
    is_not_applicable: true
  windowed_results:
    status: ok
    message: >
      Application {{ name }} reads records within its target of {{ target_seconds }}
      ({{ late_ratio }} of {{ readings | counted("reading") }} late); time in windows is not evaluated.
  too_few_readings: {status: unknown, message: "Not evaluated: {{ name }} reported only {{ readings | counted('reading') }}."}
  idle:
    status: unknown
    message: "Not evaluated: no process of {{ name }} reported a record within the last minute."
    details:
      - "No records arrived, or its client is older than Kafka 2.6."
  sources_not_reported:
    status: unknown
    message: "Not evaluated: {{ name }} did not report its source topics; its client is older than Kafka 3.3."
  lag_not_reported:
    status: unknown
    message: "Not evaluated: time in the log of the source topics of {{ name }} was not reported."
  no_response:
    status: unknown
    message: >
      Not evaluated: {{ unresponsive_processes }} of {{ processes | counted("process", "processes") }} of {{ name }} did not
      respond over JMX.
  within_target:
    status: ok
    message: >
      Application {{ name }} meets its latency target of {{ target_seconds }}: {{ late_ratio }} of
      {{ readings | counted("reading") }} late at node {{ node }}.
caused_by:
  lag_delays_records: [in_log, before_processing]
  dead_threads_delay_records: [in_log, before_processing]
  garbage_collection_delays_records: [in_log, before_processing, in_application]
  external_calls_delay_records: [in_log, before_processing, in_application]
open_after_hours: 2
clear_after_hours: 3
description: |
  Evaluates applications with a target (`latency_targets` in the configuration). A reading is the mean age of the records
  that reached a node of a task within the last minute. The terminal node with the most readings above the target counts:
  they must be more than `share`. A sub-topology that aggregates windows or suppresses updates may hold records back on
  purpose: there the nodes count where records enter. The age that records have when they are written is subtracted first:
  the part of the youngest record's age that its mean time in the log does not explain. Time in the log is lag ÷ arrival
  rate, less the normal time between two commits.
runbook: |
  ## Meaning
  Records are older than the configured target when the application has processed them.
  ## Impact
  Users of the results see stale data.
  ## Diagnosis
  1. Which part is the largest: before Kafka, in the log, or in the application?
  2. In the log: is the whole group behind, or one partition?
  3. In the application: time in the log of its own internal topics counts here; a later sub-topology can be the slow one.
  4. Is the target realistic? Commits, caches, and fetches take seconds by default.
  ## Mitigation
  1. In the log: more threads or instances, or cheaper processing.
  2. In the application: faster external calls, a shorter commit interval, fewer repartitions.
  3. Before Kafka: producer settings.
limitations: |
  Readings are means and maxima of tasks, not percentiles of records, and cover only the minutes after the hour. Delays in the
  log shorter than the normal time between two commits cannot be distinguished from old timestamps: if all records are that
  late, the detector does not fire. Left and outer stream-stream joins hold unmatched records until their window ends; this is
  not reported. Nor is the origin of a late write: an upstream application or a producer. A target that matches no
  application has no effect.
*/
with targeted as materialized (
  select
    p.*,
    t.target_seconds,
    dense_rank() over (order by p.cluster, p.application_id) as number
  from public.stream_processes(:hour) as p
  cross join lateral (
    select detect.latency_target_of(public.resource_key('application', p.cluster, p.application_id)) as target_seconds
  ) as t
  where t.target_seconds is not null and exists (select 1 from detect.latency_target)
),

application as materialized (
  select
    number,
    cluster,
    application_id,
    target_seconds,
    array_agg(endpoint) as endpoints,
    count(*) as processes,
    count(*) - count(samples) as unresponsive_processes
  from targeted
  group by number, cluster, application_id, target_seconds
),

node as materialized (
  select
    t.number,
    t.target_seconds,
    n.subtopology,
    n.node,
    n.topics,
    n.holds_back,
    n.readings,
    n.age_mean_ms / 1000 as age_mean_seconds,
    n.age_max_ms / 1000 as age_max_seconds,
    n.ages_ms
  from targeted as t
  inner join metrics.stream_node_hourly as n
    on n.hour = :hour and t.cluster = n.cluster and t.endpoint = n.endpoint
),

source as materialized (
  select
    a.number,
    s.*
  from application as a
  cross join lateral public.stream_sources(a.cluster, a.application_id, a.endpoints, :hour) as s
),

-- Topics that the application reads from outside, and how old their records are when they are written.
external_source as materialized (
  select
    *,
    greatest(age_min_seconds - log_seconds, 0) as initial_age_seconds
  from source
  where not is_own
),

-- The external source of each sub-topology; without one of its own, all sources of the application.
subtopology_source as materialized (
  select distinct on (n.number, n.subtopology)
    n.number,
    n.subtopology,
    e.topic,
    e.age_mean_seconds,
    least(e.log_seconds, e.age_mean_seconds) as log_seconds,
    least(e.log_most_seconds, e.age_mean_seconds) as log_most_seconds,
    e.log_worst_seconds,
    max(e.initial_age_seconds) over its as initial_age_seconds,
    first_value(e.topic) over (its order by e.initial_age_seconds desc, e.topic asc) as initial_age_topic
  from (select distinct number, subtopology from node) as n
  inner join external_source as e on n.number = e.number
  where n.subtopology = e.subtopology or not exists (
    select 1 from external_source as own where own.number = n.number and own.subtopology = n.subtopology
  )
  window its as (partition by n.number, n.subtopology)
  order by n.number asc, n.subtopology asc, e.age_mean_seconds desc, e.topic asc
),

-- Sub-topologies that may follow one that holds records back until windows end.
downstream_subtopology as materialized (
  select distinct
    number,
    subtopology
  from source
  where is_own and number in (select n.number from node as n where n.holds_back)
),

-- Nodes where records end; in sub-topologies that hold records back, nodes where they enter.
end_node as materialized (
  select
    n.number,
    n.node,
    n.topics is not null as is_source,
    w.topic,
    w.age_mean_seconds as source_age_seconds,
    w.log_seconds,
    w.log_most_seconds,
    w.log_worst_seconds,
    w.initial_age_seconds,
    w.initial_age_topic,
    sum(n.readings) as readings,
    sum(n.age_mean_seconds * n.readings) / sum(n.readings) as age_mean_seconds,
    max(n.age_max_seconds) as age_max_seconds,
    sum(late.raw) / sum(n.readings) as raw_late_ratio,
    sum(late.own) / sum(n.readings) as late_ratio
  from node as n
  inner join subtopology_source as w on n.number = w.number and n.subtopology = w.subtopology
  -- Ages are sorted: if the last is in time, all are.
  cross join lateral (
    select
      count(*) filter (where cast(age as double precision) > n.target_seconds * 1000) as raw,
      count(*) filter (where cast(age as double precision) > (n.target_seconds + w.initial_age_seconds) * 1000) as own
    from jsonb_array_elements(n.ages_ms) as age
    where cast(n.ages_ms -> -1 as double precision) > n.target_seconds * 1000
  ) as late
  where case
    when n.holds_back then (n.number, n.node) in (select e.number, e.node from external_source as e)
    else n.topics is null and (n.number, n.subtopology) not in (select a.number, a.subtopology from downstream_subtopology as a)
  end
  group by
    n.number, n.node, n.topics is not null, w.topic, w.age_mean_seconds, w.log_seconds, w.log_most_seconds, w.log_worst_seconds,
    w.initial_age_seconds, w.initial_age_topic
),

worst_node as materialized (
  select distinct on (number)
    *,
    greatest(age_mean_seconds - source_age_seconds, 0) as in_application_seconds,
    greatest(least(source_age_seconds, age_mean_seconds) - log_seconds, 0) as before_kafka_seconds,
    bool_and(is_source) over (partition by number) as has_only_sources
  from end_node
  order by number asc, late_ratio desc, raw_late_ratio desc, is_source asc, age_mean_seconds desc, node asc
),

application_source as (
  select
    number,
    count(*) filter (where not is_own) > 0 as has_external,
    bool_and(log_seconds is not null) filter (where not is_own) as is_lag_known,
    min(age_min_seconds) filter (where not is_own) as age_min_seconds,
    (array_agg(topic order by age_min_seconds asc, topic asc) filter (where not is_own))[1] as youngest_topic,
    (array_agg(topic order by log_worst_seconds desc nulls last, topic asc) filter (where is_own))[1] as internal_topic,
    max(log_worst_seconds) filter (where is_own) as internal_topic_seconds
  from source
  group by number
),

-- Applications that read old records and have not caught up since.
catching_up as (
  select
    a.number,
    b.since,
    b.is_new
  from application as a
  inner join public.groups_replaying(:hour, cast(:replay_hours as integer)) as b
    on a.cluster = b.cluster and a.application_id = b.group_id
  where not exists (
    select 1 from metrics.consumer_group_hourly as g
    where g.cluster = b.cluster and g.group_id = b.group_id
    and g.hour > b.since and g.hour <= :hour and g.lag_seconds_max <= a.target_seconds
  )
)

select
  case
    when a.unresponsive_processes = a.processes then 'no_response'
    when n.number is null then 'idle'
    when t.has_external is not true then 'sources_not_reported'
    when not t.is_lag_known then 'lag_not_reported'
    when t.age_min_seconds < -:ahead_seconds then 'producer_clock_ahead'
    when r.number is not null then 'catching_up'
    when w.number is null or w.readings < :least_readings then 'too_few_readings'
    when w.late_ratio > :share then case
      when w.in_application_seconds >= greatest(w.log_seconds, w.before_kafka_seconds) then 'in_application'
      when w.log_seconds >= w.before_kafka_seconds then 'in_log'
      when w.log_most_seconds < w.source_age_seconds - w.log_most_seconds then 'before_kafka'
      else 'before_processing'
    end
    when w.raw_late_ratio > :share then 'old_timestamps'
    when a.unresponsive_processes > 0 then 'no_response'
    when w.has_only_sources then 'windowed_results'
    else 'within_target'
  end as reason,
  a.cluster,
  a.application_id,
  a.target_seconds,
  w.node,
  w.is_source,
  w.late_ratio,
  w.raw_late_ratio,
  coalesce(w.readings, 0) as readings,
  w.age_mean_seconds,
  w.age_max_seconds,
  w.before_kafka_seconds,
  w.log_seconds as in_log_seconds,
  w.log_most_seconds as in_log_seconds_max,
  w.in_application_seconds,
  w.topic,
  w.log_worst_seconds as worst_partition_seconds,
  w.initial_age_seconds,
  w.initial_age_topic,
  t.internal_topic,
  t.internal_topic_seconds,
  t.youngest_topic as clock_ahead_topic,
  -t.age_min_seconds as clock_ahead_seconds,
  r.since as catching_up_since,
  r.is_new,
  a.processes,
  a.unresponsive_processes
from application as a
left join (select distinct number from node) as n on a.number = n.number
left join application_source as t on a.number = t.number
left join worst_node as w on a.number = w.number
left join catching_up as r on a.number = r.number

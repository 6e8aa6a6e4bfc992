/*
title: Topic under-partitioned
resource_kind: reading
owner_role: application
maturity: stable
reads:
  - metrics.consumer_partition_hourly
  - metrics.consumer_group_hourly
  - metrics.jvm_app_hourly
  - metrics.topic_hourly
  - inventory.topic_hourly
params:
  utilisation: {default: 0.8, unit: ratio, why: "above it, a restart or a slow hour leaves a backlog that hardly shrinks"}
  headroom: {default: 1.3, unit: ratio, why: "the advised capacity is a third above the peak"}
  skew: {default: 3, unit: ratio, why: "of the mean; less is normal variation between keys"}
  days: {default: 14, unit: d, why: "two weekly cycles"}
  waiting_ratio: {default: 0.5, unit: ratio, why: "threads that spend half of their time in poll have as much in reserve"}
  caught_up_seconds:
    default: 900
    unit: s
    why: "per hour; a group that lags on purpose keeps its lag and reads only what comes in"
  spread: {default: 0.1, unit: ratio, why: "an hourly mean and the speed of one member cover different minutes"}
  least_records: {default: 1000, unit: records, why: "the mean latency and the partition shares of fewer are random"}
key_metrics: [peak_records_per_second, capacity_records_per_second, thread_records_per_second, threads, partitions]
verdicts:
  too_few_threads:
    status: firing
    severity: warning
    message: &message >-
      Topic {{ topic }} peaks at {{ peak_records_per_second }}, {{ utilisation_ratio }} of the
      {{ capacity_records_per_second }} that {{ group_id }} can process with
      {{ threads | counted("thread") }} for {{ partitions | counted("partition") }}.
    details: &details
      - "The peak is the 99th percentile of the hours of {{ days }}."
      - &estimate >-
        {% if is_estimate %}One thread processes an estimated {{ thread_records_per_second }}, at
        {{ record_latency_ms }} per record.{% endif %}
      - &measured >-
        {% if not is_estimate %}One member read {{ thread_records_per_second }} at most while it caught up.{% endif %}
    impact: &impact "After a restart or a slow hour, consumer lag of {{ group_id }} hardly shrinks; it grows at each peak."
    actions:
      - "Run {{ advised_threads }} threads or members."
      - >-
        {% if more_partitions %}Plan more partitions: the peak needs {{ more_partitions }} partitions, and as many
        threads.{% endif %}
      - &together >-
        {% if together_names %}Keep co-partitioned topics equal: {{ together_names }}.{% endif %}
      - &cheaper "Reduce the processing time per record."
    commands:
      - >-
        kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --members --verbose
        --group {{ group_id }}
  too_few_partitions:
    status: firing
    severity: warning
    message: *message
    details: *details
    impact: *impact
    actions:
      - >-
        Increase {{ topic }} to {{ needed_threads | counted("partition") }}, then run as many threads; more threads
        alone stay idle.
      - *together
      - "{% if owner_names %}Ask {{ owner_names }} about the co-partitioned topics.{% endif %}"
      - "Rebuild joins and state stores from the start: keys move to other partitions."
      - *cheaper
    commands:
      - "kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --describe --topic {{ topic }}"
      - >-
        kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --alter --topic {{ topic }}
        --partitions {{ needed_threads.value }}
  hot_key:
    status: firing
    severity: warning
    message: >-
      Partition {{ hot_partition }} of topic {{ topic }} peaks at {{ hot_records_per_second }}; one thread of
      {{ group_id }} processes at most {{ thread_records_per_second }}.
    details:
      - "This partition received {{ hot_ratio }} of the topic's records in the last hour."
      - >-
        {% if hot_hours %}The peak is the 99th percentile of {{ hot_hours | counted("hour") }} of this partition
        within {{ days }}.{% endif %}
      - >-
        {% if not hot_hours %}The peak is this share of the topic's peak, {{ peak_records_per_second }} (99th percentile
        of {{ days }}).{% endif %}
      - *estimate
      - *measured
    impact: "Consumer lag of this partition grows at each peak, and more threads or partitions do not help."
    actions:
      - "Find the keys with the most records in this partition."
      - "Add a suffix to these keys so that they spread over partitions; a key always stays in one partition."
      - *cheaper
    commands:
      - >-
        kafka-console-consumer.sh --bootstrap-server {{ bootstrap_servers }} --topic {{ topic }}
        --partition {{ hot_partition.value }} --offset latest --max-messages 1000
        --property print.key=true --property print.value=false
  idle_threads:
    status: ok
    message: >-
      At the peak of topic {{ topic }}, {{ peak_records_per_second }}, threads of {{ group_id }} spend {{ poll_ratio }} of
      their time in poll: they have capacity in reserve.
  sufficient:
    status: ok
    message: >-
      Topic {{ topic }} received at most {{ most_records_per_second }} within {{ days }}; {{ group_id }} can process
      {{ "an estimated" if is_estimate else "at least" }} {{ capacity_records_per_second }}.
  inconsistent_capacity:
    status: unknown
    message: >-
      Not evaluated: members of {{ group_id }} read {{ hourly_records_per_second }} on average, more than the capacity
      of {{ thread_records_per_second }} from their {{ "latency" if is_estimate else "catch-up speed" }}.
  insufficient_records:
    status: unknown
    message: >-
      Not evaluated: {{ group_id }} processed only {{ records }} in the hour, and had no lag to catch up
      within {{ days }}.
  latency_not_reported:
    status: unknown
    message: >-
      Not evaluated: {{ group_id }} did not report its record latency, and had no lag to catch up within {{ days }}.
  threads_not_reported:
    status: unknown
    message: "Not evaluated: the number of threads or members of {{ group_id }} was not reported."
  traffic_not_reported:
    status: unknown
    message: "Not evaluated: the partitions or the incoming records of topic {{ topic }} were not reported."
  insufficient_history:
    status: unknown
    message: "Not evaluated: incoming records of topic {{ topic }} were reported for {{ known_hours }} only."
open_after_hours: 2
clear_after_hours: 24
description: |
  Evaluates plain and repartition topics that are assigned to members of a group. The capacity of one thread is the
  greater of two values: 1 ÷ mean record latency (Kafka Streams, with at least least_records in the hour), and the highest
  rate of one member that had lag in all its commits of an hour in which the group caught up by caught_up_seconds. The
  group's capacity is that of its threads or of the topic's partitions, whichever are fewer.
  Fires when the 99th percentile of the hours of `days` reaches utilisation of the group's capacity. Fires also when the
  busiest partition (at least skew times the mean) reaches utilisation of one thread, by its share of the peak and by its
  own 99th percentile, if half of its hours are known. Threads that spend more than waiting_ratio of the peak in poll have
  reserves. Groups that read faster than their capacity on the mean of an hour are not evaluated.
runbook: |
  ## Meaning
  The peak traffic of the topic almost reaches what the consumer group can process.
  ## Impact
  A restart or a slow hour leaves a backlog that shrinks slowly or not at all.
  ## Diagnosis
  1. Compare the record latency with earlier: a database call or a larger state store may have slowed processing.
  2. Compare threads with partitions: each partition is processed by one thread.
  3. Check the keys of a hot partition.
  ## Mitigation
  1. Reduce the processing time per record; this is cheaper than more partitions.
  2. Fewer members than partitions: scale out first.
  3. Add partitions last: Kafka cannot remove them, keys move, and co-partitioned topics, changelogs, and repartition
     topics need the same number. Reset the application, or start a new application.id next to the old one.
limitations: |
  Without a catch-up phase the capacity is an estimate, and the details state it. Groups without reported latency (only
  Kafka Streams exposes it) and without a catch-up phase within `days` are not evaluated. A shared database may become the
  limit with more threads. Other topics of the group take time too, and are not subtracted. Members with the same client
  id on one host are averaged. Peaks within an hour exceed its mean. The hot partition is that of the last hour; if less
  than half of its own hours are known, its share of that hour is applied to the peak.
*/
with reading as materialized (
  select
    r.cluster,
    r.topic,
    r.group_id,
    t.partitions,
    r.busiest_per_second,
    r.arriving_per_second
  from (
    select
      cluster,
      topic,
      group_id,
      max(arriving_per_second) as busiest_per_second,
      sum(arriving_per_second) as arriving_per_second
    from metrics.consumer_partition_hourly
    where hour = :hour and is_assigned is distinct from false
    group by cluster, topic, group_id
  ) as r
  left join inventory.topic_hourly as t on r.cluster = t.cluster and r.topic = t.topic and t.hour = :hour
  where coalesce(t.kind, 'plain') in ('plain', 'repartition')
),

rate as materialized (
  select
    cluster,
    topic,
    count(messages_in / nullif(covered_seconds, 0)) as known_hours,
    max(messages_in / nullif(covered_seconds, 0)) as most_per_second
  from metrics.topic_hourly
  where hour > :hour - make_interval(days => :days) and hour <= :hour
  group by cluster, topic
),

measured as materialized (
  select
    r.*,
    a.threads,
    a.records,
    a.record_latency_ms,
    a.seen_per_second,
    a.thread_per_second,
    a.is_estimate,
    t.known_hours,
    t.most_per_second,
    least(a.threads, r.partitions) as working_threads,
    a.thread_per_second * least(a.threads, r.partitions) as capacity_per_second,
    case
      when r.busiest_per_second * r.partitions >= :skew * r.arriving_per_second
      and r.arriving_per_second * 3600 >= :least_records
        then r.busiest_per_second / r.arriving_per_second
    end as hot_ratio
  from reading as r
  inner join
    public.thread_capacity(:hour, :days, :least_records, :caught_up_seconds, :spread) as a using (cluster, group_id)
  left join rate as t using (cluster, topic)
),

-- Only for groups with a largest hour above the limit: the others cannot fire. An index reads these hours.
peak_candidate as materialized (
  select
    m.cluster,
    m.topic,
    m.group_id,
    h.hour,
    h.messages_in / nullif(h.covered_seconds, 0) as per_second
  from measured as m
  inner join metrics.topic_hourly as h using (cluster, topic)
  where h.hour = any(
    array(select :hour - n * interval '1 hour' from generate_series(0, :days * 24 - 1) as n)
  )
  and (
    m.most_per_second >= :utilisation * m.capacity_per_second
    or m.most_per_second * m.hot_ratio >= :utilisation * m.thread_per_second
  )
),

near as materialized (
  select
    m.*,
    peak.per_second as peak_per_second
  from measured as m
  inner join (
    select
      cluster,
      topic,
      group_id,
      percentile_disc(0.99) within group (order by per_second) as per_second
    from peak_candidate
    group by cluster, topic, group_id
  ) as peak using (cluster, topic, group_id)
  where peak.per_second >= :utilisation * m.capacity_per_second
  or peak.per_second * m.hot_ratio >= :utilisation * m.thread_per_second
),

peak_hour as materialized (
  select
    n.cluster,
    n.topic,
    n.group_id,
    h.hour
  from near as n
  inner join peak_candidate as h
    on n.cluster = h.cluster and n.topic = h.topic and n.group_id = h.group_id and n.peak_per_second <= h.per_second
),

polled as materialized (
  select
    hour,
    cluster,
    application_id as group_id,
    avg(poll_ratio) as poll_ratio
  from metrics.jvm_app_hourly
  where hour = any(array(select distinct peak_hour.hour from peak_hour)) and application_id is not null
  group by hour, cluster, application_id
),

at_peak as materialized (
  select
    h.cluster,
    h.topic,
    h.group_id,
    avg(p.poll_ratio) as poll_ratio
  from peak_hour as h
  inner join polled as p using (hour, cluster, group_id)
  group by h.cluster, h.topic, h.group_id
),

-- The busiest partition of the hour: its own peak, or its share of the topic's.
hot as materialized (
  select
    n.cluster,
    n.topic,
    n.group_id,
    h.partition,
    h.known_hours,
    coalesce(h.peak_per_second, n.peak_per_second * n.hot_ratio) as per_second
  from near as n
  cross join lateral public.hot_partition(:hour, n.cluster, n.topic, n.group_id, :days) as h
  where n.peak_per_second * n.hot_ratio >= :utilisation * n.thread_per_second
),

short as materialized (
  select
    n.*,
    n.peak_per_second / n.capacity_per_second as utilisation_ratio,
    ceil(n.peak_per_second * :headroom / n.thread_per_second)::integer as needed_threads,
    h.partition as hot_partition,
    h.per_second as hot_per_second,
    h.known_hours as hot_hours,
    p.poll_ratio,
    together.names as together_names,
    together.owners as owner_names
  from near as n
  left join at_peak as p using (cluster, topic, group_id)
  left join hot as h
    on n.cluster = h.cluster and n.topic = h.topic and n.group_id = h.group_id
    and h.per_second >= :utilisation * n.thread_per_second
  cross join lateral public.copartitioned_topics(:hour, n.cluster, n.topic, n.group_id) as together
  where h.partition is not null or n.peak_per_second >= :utilisation * n.capacity_per_second
)

select
  case
    when m.threads is null then 'threads_not_reported'
    when m.partitions is null or m.most_per_second is null then 'traffic_not_reported'
    when m.known_hours < :days * 12 then 'insufficient_history'
    when m.thread_per_second is null and m.record_latency_ms is not null then 'insufficient_records'
    when m.thread_per_second is null then 'latency_not_reported'
    when m.seen_per_second > m.thread_per_second then 'inconsistent_capacity'
    when s.poll_ratio > :waiting_ratio then 'idle_threads'
    when s.hot_partition is not null then 'hot_key'
    when s.threads < s.partitions then 'too_few_threads'
    when s.topic is not null then 'too_few_partitions'
    else 'sufficient'
  end as reason,
  m.cluster,
  m.topic,
  m.group_id,
  s.peak_per_second as peak_records_per_second,
  m.capacity_per_second as capacity_records_per_second,
  m.thread_per_second as thread_records_per_second,
  m.threads,
  m.partitions,
  s.utilisation_ratio,
  m.working_threads,
  s.needed_threads,
  least(s.needed_threads, s.partitions) as advised_threads,
  case when s.needed_threads > s.partitions then s.needed_threads end as more_partitions,
  m.is_estimate,
  m.record_latency_ms,
  m.records,
  m.most_per_second as most_records_per_second,
  m.seen_per_second as hourly_records_per_second,
  m.known_hours,
  s.poll_ratio,
  s.hot_partition,
  case when s.hot_partition is not null then s.hot_ratio end as hot_ratio,
  s.hot_per_second as hot_records_per_second,
  s.hot_hours,
  s.together_names,
  s.owner_names
from measured as m
left join short as s using (cluster, topic, group_id)

/*
title: A topic gets almost as much as its readers can take
resource_kind: reading
owner_role: application
maturity: stable
reads: [metrics.consumer_partition_hourly, metrics.consumer_group_hourly, metrics.jvm_app_hourly, metrics.topic_hourly, inventory.topic_hourly]
params:
  utilisation: {default: 0.8, unit: ratio, why: "above it a restart or a slow hour leaves a backlog that hardly shrinks"}
  headroom: {default: 1.3, unit: ratio, why: "what is advised bears a third more than the peak"}
  skew: {default: 3, unit: ratio, why: "of the mean; less is what keys do by chance"}
  days: {default: 14, unit: d, why: "two weekly rhythms"}
  waiting_ratio: {default: 0.5, unit: ratio, why: "threads that spend half of their time in poll have as much to spare"}
  caught_up_seconds: {default: 900, unit: s, why: "in an hour; who is late on purpose stays as late as it is, and reads as much as comes in"}
  spread: {default: 0.1, unit: ratio, why: "a mean of an hour and the speed of one member are of different minutes"}
  least_records: {default: 1000, unit: records, why: "the mean latency of fewer is chance, and so is who got them"}
key_metrics: [peak_records_per_second, capacity_records_per_second, thread_records_per_second, threads, partitions]
verdicts:
  few_members:
    status: firing
    severity: warning
    message: &reason "At its peak (99th percentile of the hours of {{ days }}) {{ topic }} gets {{ peak_records_per_second }}. {% if is_estimate %}At {{ record_latency_ms }} a record {{ group_id }} can take an estimated {{ capacity_records_per_second }}{% else %}The fastest that one of {{ group_id }}'s members was seen to read while it caught up is {{ thread_records_per_second }}; {{ working_threads }} times that is {{ capacity_records_per_second }}{% endif %}: the peak is {{ utilisation_ratio }} of it. It has {{ threads | counted('reading thread') }} for {{ partitions | counted('partition') }}."
    actions:
      - "Run {{ advised_threads }} threads or members.{% if needed_threads.value > partitions.value %} That is as many as there are partitions: it takes {{ needed_threads }} of both{% if together_names %}, and as many of {{ together_names }}{% endif %}.{% endif %} Or make a record cheaper."
    commands: ["kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --members --verbose --group {{ group_id }}"]
  partitions_short:
    status: firing
    severity: warning
    message: *reason
    actions:
      - "More threads can't help: each partition has its own. Give {{ topic }} {{ needed_threads | counted('partition') }}{% if together_names %}, and as many to what {{ group_id }} reads or keeps with the same number: {{ together_names }}{% endif %}{% if owner_names %} (ask {{ owner_names }}){% endif %}; then run as many threads. Keys move to other partitions: joins and stores by key must be built anew, from the start. Or make a record cheaper."
    commands: ["kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --alter --topic {{ topic }} --partitions {{ needed_threads.value }}"]
  hot_key:
    status: firing
    severity: warning
    message: "Partition {{ hot_partition }} of {{ topic }} got {{ hot_ratio }} of the last hour's records. {% if hot_hours %}At its own peak (99th percentile of {{ hot_hours | counted('hour') }} of {{ days }}) it got {{ hot_records_per_second }}.{% else %}Of its peak (99th percentile of the hours of {{ days }}: {{ peak_records_per_second }}) that is {{ hot_records_per_second }}.{% endif %} One thread of {{ group_id }} reads a partition, and {% if is_estimate %}can take an estimated {{ thread_records_per_second }} at {{ record_latency_ms }} a record{% else %}the fastest that one was seen to read while it caught up is {{ thread_records_per_second }}{% endif %}."
    actions:
      - "More partitions won't help: a key stays in one. Find the keys that get so many records; add something to the key that spreads them, or make these records cheaper."
    commands: ["kafka-console-consumer.sh --bootstrap-server {{ bootstrap_servers }} --topic {{ topic }} --partition {{ hot_partition.value }} --offset latest --max-messages 1000 --property print.key=true --property print.value=false"]
  waits: {status: ok, message: "At the topic's peak, {{ peak_records_per_second }}, the threads spend {{ poll_ratio }} of their time in poll: they have time to spare."}
  fits: {status: ok, message: "At most {{ most_records_per_second }} came in within {{ days }}; its readers can take {{ 'an estimated' if is_estimate else 'at least' }} {{ capacity_records_per_second }}."}
  outpaced: {status: unknown, message: "What a thread can take isn't known: it was seen to read {{ seen_records_per_second }} on the mean of an hour, and {{ 'by its latency' if is_estimate else 'while it caught up' }} it would be {{ thread_records_per_second }}."}
  few_records: {status: unknown, message: "Only {{ records }} records were processed in the hour, and it had nothing to catch up with in {{ days }}: how many it could take isn't known."}
  unseen: {status: unknown, message: "How long a record takes isn't known, and it had nothing to catch up with in {{ days }}: how many it could take isn't known."}
  threads_unknown: {status: unknown, message: "How many threads or members read it isn't known."}
  uncounted: {status: unknown, message: "How many partitions it has, or how many records come in, isn't known."}
  young: {status: unknown, message: "What comes in is known of {{ known_hours }} only."}
open_after_hours: 2
clear_after_hours: 24
description: |
  Plain and repartition topics that a group's members are assigned. What one thread can take is the greater of
  1 ÷ mean time for a record (Kafka Streams; of at least least_records in the hour) and the fastest that a member read, of
  all its partitions, which was behind for as long as its commits of the hour tell (`days`), where the group caught up by
  caught_up_seconds in that hour. The group can take as much as
  the lesser of its threads and the topic's partitions, even if it read nothing else. The 99th percentile of the hours'
  records of `days` reaches utilisation of that; or the share of it that the busiest partition gets, at least skew times
  the mean, reaches utilisation of one thread, and so does the 99th percentile of that partition's own hours, where half
  of those of `days` are known: a key that gets most of a quiet hour fills nothing. A group whose members on the mean of an hour read faster than that isn't
  judged, and one whose threads spend more than waiting_ratio of the peak's hours in poll is well.
runbook: |
  1. Is a record dearer than it was? A look-up, a database, a larger store: cheaper than more partitions.
  2. Fewer members than partitions: scale out first.
  3. Partitions can't be taken away again, and keys move. Topics that are joined need the same number, and so do
     changelogs and repartition topics: reset the application, or a new application.id beside the old one.
limitations: |
  What was never seen is an estimate, and says so. Who has neither told its latency (only Kafka Streams does) nor
  caught up for an hour in `days` isn't judged at all. Limits outside: with more threads a database may become the limit.
  What else the group reads takes time too, and isn't taken off. Members with one client id on one host count by their
  mean. Peaks within an hour are higher than its mean. The hot partition is the last hour's; where its own hours are known
  of less than half of `days`, its share of that hour is taken for its share of the peak.
*/
with topic as materialized (
  select
    cluster,
    topic,
    kind,
    partitions,
    application_id
  from inventory.topic_hourly
  where hour = :hour
),

reading as materialized (
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
  left join topic as t using (cluster, topic)
  where coalesce(t.kind, 'plain') in ('plain', 'repartition')
),

application as materialized (
  select
    cluster,
    application_id as group_id,
    nullif(sum(stream_threads_alive), 0) as threads,
    sum(records_processed) as records,
    sum(record_latency_ms * records_processed)
    / nullif(sum(records_processed) filter (where record_latency_ms is not null), 0) as record_latency_ms
  from metrics.jvm_app_hourly
  where hour = :hour and application_id is not null
  group by cluster, application_id
),

-- The fastest that its members read: on the mean of them and of an hour.
speed as materialized (
  select
    cluster,
    group_id,
    max(records_consumed / 3600.0 / nullif(least(members, partitions), 0)) as seen_per_second
  from metrics.consumer_group_hourly
  where hour > :hour - make_interval(days => :days) and hour <= :hour
  group by cluster, group_id
),

-- And one of them while the group caught up.
caught_up as materialized (
  select
    s.cluster,
    s.group_id,
    max(s.busy_member_per_second) as busy_per_second
  from metrics.consumer_group_hourly as s
  inner join metrics.consumer_group_hourly as b
    on s.hour = b.hour + interval '1 hour' and s.cluster = b.cluster and s.group_id = b.group_id
  where s.hour > :hour - make_interval(days => :days) and s.hour <= :hour
  and s.busy_member_per_second > 0 and s.lag_seconds_max <= b.lag_seconds_max - :caught_up_seconds
  group by s.cluster, s.group_id
),

able as materialized (
  select
    g.cluster,
    g.group_id,
    coalesce(nullif(g.members, 0), a.threads) as threads,
    a.records,
    a.record_latency_ms,
    s.seen_per_second,
    -- Seen is seen: within the spread of both figures it is what a thread can take.
    case
      when s.seen_per_second <= known.per_second * (1 + :spread) then greatest(known.per_second, s.seen_per_second)
      else known.per_second
    end as thread_per_second,
    coalesce(own.per_second > c.busy_per_second, own.per_second is not null) as is_estimate
  from metrics.consumer_group_hourly as g
  inner join speed as s using (cluster, group_id)
  left join caught_up as c using (cluster, group_id)
  left join application as a using (cluster, group_id)
  cross join lateral (
    select case when a.records >= :least_records then 1000 / nullif(a.record_latency_ms, 0) end as per_second
  ) as own
  cross join lateral (select greatest(own.per_second, c.busy_per_second) as per_second) as known
  where g.hour = :hour and (a.group_id is not null or c.group_id is not null)
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

judged as materialized (
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
  inner join able as a using (cluster, group_id)
  left join rate as t using (cluster, topic)
),

-- Where even the largest hour fits, the 99th percentile does: of the others all hours, by the index.
seen as materialized (
  select
    j.cluster,
    j.topic,
    j.group_id,
    h.hour,
    h.messages_in / nullif(h.covered_seconds, 0) as per_second
  from judged as j
  inner join metrics.topic_hourly as h using (cluster, topic)
  where h.hour = any(
    array(select :hour - n * interval '1 hour' from generate_series(0, :days * 24 - 1) as n)
  )
  and (
    j.most_per_second >= :utilisation * j.capacity_per_second
    or j.most_per_second * j.hot_ratio >= :utilisation * j.thread_per_second
  )
),

near as materialized (
  select
    j.*,
    peak.per_second as peak_per_second
  from judged as j
  inner join (
    select
      cluster,
      topic,
      group_id,
      percentile_disc(0.99) within group (order by per_second) as per_second
    from seen
    group by cluster, topic, group_id
  ) as peak using (cluster, topic, group_id)
  where peak.per_second >= :utilisation * j.capacity_per_second
  or peak.per_second * j.hot_ratio >= :utilisation * j.thread_per_second
),

peak_hour as materialized (
  select
    n.cluster,
    n.topic,
    n.group_id,
    h.hour
  from near as n
  inner join seen as h
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

-- The busiest partition of the hour, and what it got at its own peak.
hot as materialized (
  select
    n.cluster,
    n.topic,
    n.group_id,
    b.partition,
    own.known_hours,
    coalesce(own.per_second, n.peak_per_second * n.hot_ratio) as per_second
  from near as n
  cross join lateral (
    select p.partition
    from metrics.consumer_partition_hourly as p
    where p.hour = :hour
    and p.cluster = n.cluster and p.group_id = n.group_id and p.topic = n.topic
    order by p.arriving_per_second desc nulls last, p.partition asc
    limit 1
  ) as b
  left join lateral (
    select
      count(h.arriving_per_second) as known_hours,
      percentile_disc(0.99) within group (order by h.arriving_per_second) as per_second
    from metrics.consumer_partition_hourly as h
    where h.hour = any(
      array(select :hour - k * interval '1 hour' from generate_series(0, :days * 24 - 1) as k)
    )
    and h.cluster = n.cluster and h.group_id = n.group_id and h.topic = n.topic and h.partition = b.partition
    having count(h.arriving_per_second) >= :days * 12
  ) as own on true
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
    p.poll_ratio
  from near as n
  left join at_peak as p using (cluster, topic, group_id)
  left join hot as h
    on n.cluster = h.cluster and n.topic = h.topic and n.group_id = h.group_id
    and h.per_second >= :utilisation * n.thread_per_second
  where h.partition is not null or n.peak_per_second >= :utilisation * n.capacity_per_second
),

-- What must have as many partitions: what it reads with the same number, its changelogs and repartition topics.
beside as materialized (
  select
    s.cluster,
    s.topic,
    s.group_id,
    string_agg(other.topic, ', ' order by other.topic) as names,
    string_agg(distinct detect.owner_of(public.resource_key('topic', s.cluster, other.topic)), ', ') as owners
  from short as s
  inner join (
    select
      cluster,
      group_id,
      topic,
      partitions
    from reading
    union
    select
      cluster,
      application_id,
      topic,
      partitions
    from topic
  ) as other using (cluster, group_id, partitions)
  where s.topic <> other.topic
  group by s.cluster, s.topic, s.group_id
)

select
  case
    when j.threads is null then 'threads_unknown'
    when j.partitions is null or j.most_per_second is null then 'uncounted'
    when j.known_hours < :days * 12 then 'young'
    when j.thread_per_second is null and j.record_latency_ms is not null then 'few_records'
    when j.thread_per_second is null then 'unseen'
    when j.seen_per_second > j.thread_per_second then 'outpaced'
    when s.poll_ratio > :waiting_ratio then 'waits'
    when s.hot_partition is not null then 'hot_key'
    when s.threads < s.partitions then 'few_members'
    when s.topic is not null then 'partitions_short'
    else 'fits'
  end as reason,
  j.cluster,
  j.topic,
  j.group_id,
  s.peak_per_second as peak_records_per_second,
  j.capacity_per_second as capacity_records_per_second,
  j.thread_per_second as thread_records_per_second,
  j.threads,
  j.partitions,
  s.utilisation_ratio,
  j.working_threads,
  s.needed_threads,
  least(s.needed_threads, s.partitions) as advised_threads,
  j.is_estimate,
  j.record_latency_ms,
  j.records,
  j.most_per_second as most_records_per_second,
  j.seen_per_second as seen_records_per_second,
  j.known_hours,
  s.poll_ratio,
  s.hot_partition,
  case when s.hot_partition is not null then s.hot_ratio end as hot_ratio,
  s.hot_per_second as hot_records_per_second,
  s.hot_hours,
  beside.names as together_names,
  beside.owners as owner_names
from judged as j
left join short as s using (cluster, topic, group_id)
left join beside on s.cluster = beside.cluster and s.topic = beside.topic and s.group_id = beside.group_id

/*
title: Co-partitioning broken
resource_kind: application
owner_role: application
maturity: stable
reads: [inventory.topic_hourly, metrics.consumer_group_hourly, metrics.consumer_partition_hourly]
params:
  look_back_days:
    default: 14
    unit: d
    why: "partition counts that have differed for two weeks are in use as they are"
key_metrics: [changed_topic, partitions, partitions_before, behind_topics, members]
verdicts:
  broken:
    status: firing
    severity: warning
    message: >-
      Topic {{ changed_topic }} has {{ partitions | counted("partition") }} ({{ partitions_before }} until
      {{ last_equal_at }}); {{ behind_topics | counted("co-partitioned topic") }} of {{ application_id }} still
      {{ behind_topics | plural("has", "have") }} {{ partitions_before }}.
    details:
      - "Topics with {{ partitions_before | counted('partition') }}: {{ behind_names }}."
    impact: >-
      Kafka Streams refuses to start with different partition counts; other joins miss records with keys that moved to
      another partition.
    actions:
      - >-
        {% if behind_plain %}Increase the partitions of {{ behind_plain }} to {{ partitions }} as well; Kafka cannot
        remove partitions.{% endif %}
      - >-
        {% if behind_internal %}Reset the application or change its application.id, and let it read from the start;
        internal topics keep their partition count until they are recreated.{% endif %}
      - "Rebuild joins and aggregations by key: existing records stay in their old partitions."
    commands:
      - "kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --describe --topic {{ changed_topic }}"
      - >-
        {% if plain_topics %}kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --alter --topic
        {{ plain_topics | join("|") | replace(".", "[.]") }} --partitions {{ partitions.value }}{% endif %}
  equal: {status: ok, message: "The partition counts of all topics that {{ application_id }} reads and owns still match."}
  not_reported:
    status: unknown
    message: "Not evaluated: consumer group {{ application_id }} reported no topic that it reads."
  insufficient_history:
    status: unknown
    message: "Not evaluated: the topics of cluster {{ cluster }} have been collected for less than a day."
open_after_hours: 1
clear_after_hours: 1
description: |
  Evaluates applications with internal topics: the topics that their consumer group reads, their changelogs, and their
  repartition topics. Fires when one of two such topics changed its partition count within look_back_days, both had the
  same count on an earlier day, and the counts differ now.
runbook: |
  ## Meaning
  Topics that are joined, or from which one state store is built, must have the same number of partitions.
  One of them got more partitions.
  ## Impact
  Kafka Streams no longer starts (TopologyException). Other consumers process a key out of order once, at the time of the
  change.
  ## Diagnosis
  1. Find out who added partitions, and why: Kafka cannot remove them.
  2. List the topics that are joined with it, and the state stores that are built from it.
  ## Mitigation
  1. Increase the partitions of the other input topics to the same number.
  2. Stateful applications: stop them, run kafka-streams-application-reset.sh, and start them again. The reset deletes
     their internal topics: they lose their state, and rebuild it only from input that retention still holds.
  3. Without downtime: start the application with a new application.id next to the old one.
limitations: |
  Counts that were equal by chance count as co-partitioning: an application that merges topics without joining them is a
  false positive. Global tables (GlobalKTable) have no consumer group. A change that was reverted within a day is missed.
*/
with present as materialized (
  select
    cluster,
    topic,
    partitions,
    application_id
  from inventory.topic_hourly
  where hour = :hour
),

day as materialized (
  select :hour - make_interval(days => n) as hour
  from generate_series(1, cast(:look_back_days as integer)) as n
),

-- The partition counts of the days before.
before as materialized (
  select distinct
    c.cluster,
    c.topic,
    c.partitions
  from inventory.topic_hourly as c
  where c.hour = any(array(select day.hour from day)) -- an array selects partitions of the table by day; a join would scan all hours
),

changed as materialized (
  select distinct
    n.cluster,
    n.topic,
    n.partitions
  from present as n
  inner join before as b using (cluster, topic)
  where n.partitions <> b.partitions
),

application as materialized (
  select
    g.cluster,
    g.group_id as application_id,
    g.members,
    g.partitions
  from metrics.consumer_group_hourly as g
  where g.hour = :hour
  and exists (select 1 from present as n where n.cluster = g.cluster and n.application_id = g.group_id)
),

reader as materialized (
  select distinct
    h.cluster,
    c.group_id as application_id,
    h.topic as changed_topic,
    h.partitions
  from changed as h
  inner join metrics.consumer_partition_hourly as c using (cluster, topic)
  where c.hour = :hour and c.is_assigned is distinct from false
),

-- All topics that an application with a changed input topic reads or owns.
related as materialized (
  select
    r.*,
    other.topic
  from reader as r
  inner join application as a using (cluster, application_id)
  cross join lateral (
    select c.topic
    from metrics.consumer_partition_hourly as c
    where c.hour = :hour and c.is_assigned is distinct from false
    and c.cluster = a.cluster and c.group_id = a.application_id
    union
    select n.topic from present as n where n.cluster = a.cluster and n.application_id = a.application_id
  ) as other
),

broken as materialized (
  select
    r.cluster,
    r.application_id,
    r.changed_topic,
    r.partitions,
    r.topic as behind_topic,
    n.application_id is not null as is_internal,
    n.partitions as partitions_before,
    equal.hour as last_equal_at
  from related as r
  inner join present as n on r.cluster = n.cluster and r.topic = n.topic and r.partitions <> n.partitions
  cross join lateral (
    select max(day.hour) as hour
    from day
    inner join inventory.topic_hourly as one
      on day.hour = one.hour and r.cluster = one.cluster and r.changed_topic = one.topic and n.partitions = one.partitions
    inner join inventory.topic_hourly as two
      on day.hour = two.hour and r.cluster = two.cluster and r.topic = two.topic and n.partitions = two.partitions
  ) as equal
  where equal.hour is not null
),

worst as (
  select distinct on (cluster, application_id)
    cluster,
    application_id,
    changed_topic,
    partitions,
    partitions_before,
    max(last_equal_at) as last_equal_at,
    count(*) as behind_topics,
    string_agg(behind_topic, ', ' order by behind_topic) as behind_names,
    string_agg(behind_topic, ', ' order by behind_topic) filter (where not is_internal) as behind_plain,
    string_agg(behind_topic, ', ' order by behind_topic) filter (where is_internal) as behind_internal,
    coalesce(jsonb_agg(behind_topic order by behind_topic) filter (where not is_internal), '[]') as plain_topics,
    jsonb_agg(public.resource_key('topic', cluster, behind_topic) order by behind_topic) as affected
  from broken
  group by cluster, application_id, changed_topic, partitions, partitions_before
  order by cluster asc, application_id asc, count(*) desc, changed_topic asc
)

select
  case
    when w.cluster is not null then 'broken'
    when not exists (select 1 from before as b where b.cluster = a.cluster) then 'insufficient_history'
    when coalesce(a.partitions, 0) = 0 then 'not_reported'
    else 'equal'
  end as reason,
  a.cluster,
  a.application_id,
  w.changed_topic,
  w.partitions,
  w.partitions_before,
  w.behind_topics,
  w.behind_names,
  w.behind_plain,
  w.behind_internal,
  w.plain_topics,
  w.last_equal_at,
  a.members,
  w.affected
from application as a
left join worst as w using (cluster, application_id)

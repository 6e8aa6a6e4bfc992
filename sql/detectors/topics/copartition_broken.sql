/*
title: Topics that belong together have different numbers of partitions
resource_kind: application
owner_role: application
maturity: stable
reads: [inventory.topic_hourly, metrics.consumer_group_hourly, metrics.consumer_partition_hourly]
params:
  look_back_days: {default: 14, unit: d, why: "what has differed for two weeks runs so"}
key_metrics: [changed_topic, partitions, partitions_before, behind_topics, members]
verdicts:
  broken:
    status: firing
    severity: warning
    message: "{{ changed_topic }} has {{ partitions | counted('partition') }}, {{ partitions_before }} until {{ last_equal_at }}; of what the application keeps or reads with it, {{ behind_names }} still {{ 'has' if behind_topics.value == 1 else 'have' }} {{ partitions_before }}. Kafka Streams refuses to start with that; joins would miss records whose keys went elsewhere."
    actions:
      - "Partitions can't be taken away. {% if behind_plain %}Bring {{ behind_plain }} to {{ partitions | counted('partition') }} too. {% endif %}{% if behind_internal %}Its internal topics follow only when they are made anew: reset the application, or give it a new application.id, and let it read from the start. {% endif %}Old keys stay where they are: what is joined or counted by key must be read anew."
    commands: &commands
      - "{% for name in plain_topics.value %}kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --alter --topic {{ name }} --partitions {{ partitions.value }}; {% endfor %}kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --describe --topic {{ changed_topic }}"
  equal: {status: ok, message: "What it reads and keeps together has the numbers of partitions that it had."}
  unread: {status: unknown, message: "What the application reads isn't known."}
  short_history: {status: unknown, message: "The cluster's topics are known since today."}
open_after_hours: 1
clear_after_hours: 1
description: |
  An application with internal topics. Of two topics that it reads or keeps (its group's topics, its changelogs and
  repartition topics), one has changed its number of partitions within look_back_days; both had the same number on a day
  before, and haven't any more.
runbook: |
  1. Who added partitions, and what for? They can't be taken away again.
  2. Which topics are joined with it, which stores are built from it? These need the same number.
  3. Stateful applications: stop, kafka-streams-application-reset.sh, start; or a new application.id beside the old one.
  4. Other consumers that rely on the order of a key see it broken once, at the time of the change.
limitations: |
  Numbers that were equal by chance look as if they belonged together: an application that merges topics without joining
  them is told wrongly where these had the same number. Tables that are read whole (GlobalKTable) have no group. Which
  number was whose a change and back within a day isn't seen.
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

-- The numbers that topics have had.
before as materialized (
  select distinct
    c.cluster,
    c.topic,
    c.partitions
  from inventory.topic_hourly as c
  where c.hour = any(array(select day.hour from day)) -- read by day; a join would read all hours
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

-- What an application that reads a changed topic reads and keeps.
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
    when not exists (select 1 from before as b where b.cluster = a.cluster) then 'short_history'
    when coalesce(a.partitions, 0) = 0 then 'unread'
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

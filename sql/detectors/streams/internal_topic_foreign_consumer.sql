/*
title: A group reads internal topics of another application
resource_kind: group
owner_role: platform
maturity: stable
reads: [metrics.consumer_group_hourly, metrics.consumer_partition_hourly, metrics.topic_hourly, inventory.topic_hourly, inventory.consumer_member_hourly, metrics.jvm_app_hourly]
params:
  commit_hours: {default: 24, unit: h, why: "who committed within a day reads, members or not"}
  mirror_applications: {default: 10, unit: applications, why: "who reads internal topics of so many applications mirrors the cluster"}
  may_read: {default: "", unit: regex, why: "groups that may, such as a backup"}
key_metrics: [foreign_topics, foreign_applications, topic_names, sent_bytes_per_second, members]
verdicts:
  reads:
    status: firing
    severity: warning
    message: "The group reads {{ topic_names }}, internal to {{ application_names }}. {% if changelogs %}Compaction removes records of changelogs that it hasn't read. {% endif %}{% if repartitions %}Kafka Streams deletes records of repartition topics once the application itself has read them. {% endif %}A change of the topology renames them or makes them anew."
    actions:
      - "Let {{ application_names }} forward what the group needs to a topic of its own, and read that."
    commands: &commands ["kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --group {{ group_id }}"]
  mirrors:
    status: firing
    severity: info
    message: "The group reads {{ foreign_topics | counted('internal topic') }} of {{ foreign_applications | counted('application') }}: it mirrors the cluster, and internal topics needn't be mirrored."
    actions:
      - "Exclude internal topics from the mirror, such as by topics.exclude=.*-changelog,.*-repartition; or name the group in may_read."
    commands: *commands
  may: {status: ok, message: "The group reads internal topics of other applications, and may."}
  keeps_to_its_own: {status: ok, message: "The group reads no internal topic of another application."}
  unknown: {status: unknown, message: "Neither members nor committed offsets of the group are known."}
open_after_hours: 1
clear_after_hours: 6
description: |
  A group with members that are assigned a changelog or repartition topic of an application, or that committed on it within
  `commit_hours`, where the application isn't its own. An application is known by a group of its name, or by a JVM that
  says its application id. A group is of the application if it has its name, or if one of its clients is named after it.
runbook: |
  1. Who reads: the members' client ids and hosts. What for: usually to look at a store, or to save a join.
  2. Let the owner of the application add a sink topic; move the reader there.
  3. Delete the group's offsets on the internal topics afterwards.
limitations: |
  Readers without a group aren't seen. Whose an internal topic is follows from names: an application that has neither a
  group nor a JVM that is read isn't known, and its topics are taken for plain ones. Offsets that nobody has moved for a
  day don't count where no member has the topic.
*/
with internal as materialized (
  select
    t.cluster,
    t.topic,
    t.application_id,
    t.kind
  from inventory.topic_hourly as t
  where t.hour = :hour and t.kind in ('changelog', 'repartition')
  -- A Samza job's changelogs have names that last, and are read on purpose.
  and not exists (
    select 1 from inventory.topic_hourly as j
    where j.hour = t.hour and j.cluster = t.cluster and j.application_id = t.application_id
    and j.kind in ('coordinator', 'checkpoint')
  )
  -- A topic that merely ends so belongs to no application that anybody knows.
  and (
    exists (
      select 1 from metrics.consumer_group_hourly as g
      where g.hour = t.hour and g.cluster = t.cluster and g.group_id = t.application_id
    )
    or exists (
      select 1 from metrics.jvm_app_hourly as a
      where a.hour = t.hour and a.cluster = t.cluster and a.application_id = t.application_id
    )
  )
),

read as (
  select
    m.cluster,
    m.group_id,
    a.topic
  from inventory.consumer_member_hourly as m
  cross join lateral jsonb_object_keys(m.assignment) as a (topic)
  where m.hour = :hour
  union
  select
    cluster,
    group_id,
    topic
  from metrics.consumer_partition_hourly
  where hour = :hour
  and committed_at > :hour + interval '1 hour' - make_interval(hours => :commit_hours)
),

foreign_read as (
  select
    r.cluster,
    r.group_id,
    i.topic,
    i.application_id,
    i.kind
  from read as r
  inner join internal as i on r.cluster = i.cluster and r.topic = i.topic
  where r.group_id <> i.application_id
  -- The application's own group under another name: its clients carry the application id.
  and not exists (
    select 1 from inventory.consumer_member_hourly as m
    where m.hour = :hour and m.cluster = r.cluster and m.group_id = r.group_id
    and starts_with(m.client_id, i.application_id || '-')
  )
),

summary as (
  select
    f.cluster,
    f.group_id,
    count(*) as topics,
    count(distinct f.application_id) as applications,
    bool_or(f.kind = 'changelog') as changelogs,
    bool_or(f.kind = 'repartition') as repartitions,
    string_agg(f.topic, ', ' order by f.topic) as topic_names,
    string_agg(distinct f.application_id, ', ') as application_names,
    sum(b.bytes_out / nullif(b.covered_seconds, 0)) as sent_bytes_per_second,
    jsonb_agg(public.resource_key('topic', f.cluster, f.topic) order by f.topic) as affected
  from foreign_read as f
  left join metrics.topic_hourly as b
    on b.hour = :hour and f.cluster = b.cluster and f.topic = b.topic
  group by f.cluster, f.group_id
)

select
  case
    when s.cluster is null and coalesce(g.members, g.partitions) is null then 'unknown'
    when s.cluster is null then 'keeps_to_its_own'
    when :may_read <> '' and g.group_id ~ :may_read then 'may'
    when s.applications >= :mirror_applications then 'mirrors'
    else 'reads'
  end as reason,
  g.cluster,
  g.group_id,
  s.topics as foreign_topics,
  s.applications as foreign_applications,
  s.topic_names,
  s.application_names,
  s.sent_bytes_per_second,
  s.changelogs,
  s.repartitions,
  g.members,
  s.affected
from metrics.consumer_group_hourly as g
left join summary as s on g.cluster = s.cluster and g.group_id = s.group_id
where g.hour = :hour

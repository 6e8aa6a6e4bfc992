/*
title: Internal topic read by another application
resource_kind: group
owner_role: platform
maturity: stable
reads:
  - metrics.consumer_group_hourly
  - metrics.consumer_partition_hourly
  - metrics.topic_hourly
  - inventory.topic_hourly
  - inventory.consumer_member_hourly
  - metrics.jvm_app_hourly
params:
  commit_hours: {default: 24, unit: h, why: "a group that committed within a day reads the topic, with or without members"}
  mirror_applications: {default: 10, unit: applications, why: "a group that reads internal topics of this many mirrors the cluster"}
  may_read: {default: "", unit: regex, why: "groups that are allowed to, such as a backup; empty: none"}
key_metrics: [foreign_topics, foreign_applications, topic_names, sent_bytes_per_second, members]
verdicts:
  foreign_read:
    status: firing
    severity: warning
    message: >
      Consumer group {{ group_id }} reads {{ foreign_topics | counted("internal topic") }} of application
      {{ application_names }}: {{ topic_names }}.
    details:
      - "{% if sent_bytes_per_second %}All consumers of these topics receive {{ sent_bytes_per_second }}.{% endif %}"
    impact: "The group loses records without an error, and breaks when the application changes its topology."
    actions:
      - "{% if has_changelogs %}Expect missing records: compaction removes changelog records before the group reads them.{% endif %}"
      - "{% if has_repartitions %}Expect missing records: Kafka Streams deletes repartition records once the application has read them.{% endif %}"
      - "Publish what the group needs to an output topic of {{ application_names }}, and read that topic instead."
    commands: &commands
      - "kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --group {{ group_id }} --members --verbose"
  cluster_mirror:
    status: firing
    severity: info
    message: >
      Consumer group {{ group_id }} mirrors {{ foreign_topics | counted("internal topic") }} of
      {{ foreign_applications | counted("application") }}.
    impact: "Mirrored internal topics cost network and storage, and no application of the target cluster can use them."
    actions:
      - "Exclude internal topics from the mirror, for example with topics.exclude=.*-changelog,.*-repartition."
      - "If the group is meant to read them, add it to may_read."
    commands: *commands
  allowed: {status: ok, message: "Consumer group {{ group_id }} is allowed to read internal topics of other applications."}
  own_topics_only: {status: ok, message: "Consumer group {{ group_id }} reads no internal topic of another application."}
  not_reported:
    status: unknown
    message: "Not evaluated: neither members nor committed offsets of consumer group {{ group_id }} were reported."
open_after_hours: 1
clear_after_hours: 6
description: |
  A group fires if a member is assigned a changelog or repartition topic of another application, or if the group committed
  on one within `commit_hours`. An application is known by a consumer group of its name, or by a JVM that reports its
  application id. A group belongs to the application if it has its name, or if one of its clients is named after it.
runbook: |
  ## Meaning
  A consumer group reads topics that Kafka Streams manages for another application.
  ## Impact
  Compaction and record deletion remove records before the group reads them. A topology change renames or recreates the topics.
  ## Diagnosis
  1. Find the reader by the client ids and hosts of the group's members.
  2. Ask for the purpose: most readers want the content of a store, or want to avoid a join of their own.
  ## Mitigation
  1. Let the owner of the application add an output topic, and move the reader there.
  2. Delete the group's committed offsets on the internal topics afterwards.
limitations: |
  Consumers without a group are not covered. Ownership of an internal topic is derived from names: an application with
  neither a group nor a monitored JVM is unknown, and its topics count as plain topics. Committed offsets older than
  `commit_hours` do not count where no member is assigned the topic.
*/
with internal_topic as materialized (
  select
    t.cluster,
    t.topic,
    t.application_id,
    t.kind
  from inventory.topic_hourly as t
  where t.hour = :hour and t.kind in ('changelog', 'repartition')
  -- Changelogs of a Samza job have stable names and are meant to be read.
  and not exists (
    select 1 from inventory.topic_hourly as j
    where j.hour = t.hour and j.cluster = t.cluster and j.application_id = t.application_id
    and j.kind in ('coordinator', 'checkpoint')
  )
  -- A topic with such a suffix is internal only if its application exists.
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

group_topic as (
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
  from group_topic as r
  inner join internal_topic as i on r.cluster = i.cluster and r.topic = i.topic
  where r.group_id <> i.application_id
  -- A group of the application under another name: its client ids carry the application id.
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
    bool_or(f.kind = 'changelog') as has_changelogs,
    bool_or(f.kind = 'repartition') as has_repartitions,
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
    when s.cluster is null and coalesce(g.members, g.partitions) is null then 'not_reported'
    when s.cluster is null then 'own_topics_only'
    when :may_read <> '' and g.group_id ~ :may_read then 'allowed'
    when s.applications >= :mirror_applications then 'cluster_mirror'
    else 'foreign_read'
  end as reason,
  g.cluster,
  g.group_id,
  s.topics as foreign_topics,
  s.applications as foreign_applications,
  s.topic_names,
  s.application_names,
  s.sent_bytes_per_second,
  s.has_changelogs,
  s.has_repartitions,
  g.members,
  s.affected
from metrics.consumer_group_hourly as g
left join summary as s on g.cluster = s.cluster and g.group_id = s.group_id
where g.hour = :hour

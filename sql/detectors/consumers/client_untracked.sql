/*
title: Client reads much and is in no group
resource_kind: client
owner_role: platform
maturity: stable
reads: [metrics.broker_sample, metrics.broker_hourly, metrics.topic_hourly, inventory.topic_hourly, inventory.consumer_group_hourly, inventory.consumer_member_hourly, metrics.consumer_group_hourly, metrics.consumer_partition_hourly, metrics.partition_hourly, metrics.client_topic_hourly]
params:
  floor_bytes_per_second: {default: 1048576, unit: bytes/s, why: "1 MiB/s of all brokers together; less is somebody's look, or a service that reads a small table"}
  loud_share: {default: 0.1, unit: share of what its topics send, why: "a tenth of the traffic that nobody accounts for is worth a question"}
  known_untracked: {default: "(^|-)spark-kafka-source-|replication-consumer$", unit: regex, why: "clients that keep their offsets elsewhere; Spark's streams have theirs in checkpoints, MirrorMaker's in Connect's topics"}
  own_state: {default: "-(restore|global)-consumer$", unit: regex, why: "so Kafka Streams names what restores its stores and keeps its global tables"}
  streams_member: {default: "-StreamThread-[0-9]+-consumer$", unit: regex, why: "so Kafka Streams names members of its groups; those of its own protocol aren't told"}
key_metrics: [fetched_bytes_per_second, sent_ratio, sent_bytes_per_second, told_topics, unaccounted_topics]
verdicts:
  loud:
    status: firing
    severity: warning
    message: &reason "Client {{ client_id }}{% if user_names %} (user {{ user_names }}){% endif %} fetches {{ fetched_bytes_per_second }}{% if sent_ratio %}, {{ sent_ratio }} of what {% if told_topics %}its topics send{% else %}all topics of the cluster send{% endif %}{% endif %}, and no member of any group has its id: nobody can tell how far behind it is.{% if told_topics %} By its own metrics it reads {{ told_topics }}.{% elif unaccounted_topics %} What no commit accounts for is sent by {{ unaccounted_topics }}.{% endif %}"
    actions:
      - &cure "Find who runs {{ client_id }}{% if endpoint %}: it is in the JVM at {{ endpoint }}{% endif %}. Let it read in a group and commit its offsets; if it keeps them elsewhere, name it in known_untracked."
    commands: &commands
      - "kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --all-groups --members | grep -F -- {{ client_id }}"
      - "kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --describe --entity-type clients --entity-name {{ client_id }}"
  untracked:
    status: firing
    severity: info
    message: *reason
    actions:
      - *cure
    commands: *commands
  tracked: {status: ok, message: "The client is a member of {{ group_ids }}."}
  known: {status: ok, message: "The client is in no group, and is known to keep its offsets elsewhere."}
  own_state: {status: ok, message: "The client keeps state of a Kafka Streams application, and needs no offsets for it."}
  job: {status: ok, message: "The client is named as {{ job_ids }}, whose offsets are committed without members."}
  little: {status: ok, message: "The client fetches {{ fetched_bytes_per_second }}."}
  uncounted: {status: unknown, message: "What the client fetches isn't known of all brokers: not all answered, or they count no longer by client."}
  members_unknown: {status: unknown, message: "The client fetches {{ fetched_bytes_per_second }}, and is in no group that tells its members; of some groups they aren't known."}
open_after_hours: 3
clear_after_hours: 3
description: |
  A client that fetches at least floor_bytes_per_second of all brokers together, by their own figures, and that is no
  member of any group. Judged are clients that did so in this hour or in one of the three before.
runbook: |
  1. Whose client: its id, the user where clients authenticate, and topics that send more than commits account for.
  2. Nobody knows: the brokers' request log has the address of who fetches (log level DEBUG of kafka.request.logger).
  3. It keeps its offsets elsewhere and somebody watches how late it is: name it in known_untracked.
limitations: |
  Brokers count by client only where quotas are set (a generous default quota is enough); where quotas are by user alone they
  don't name clients. The rate is that of the seconds before a run asked: who reads in bursts may be seen in some hours only.
  One that has the id of some group's member is taken for it. Members of share groups aren't known: name their clients in
  known_untracked. Which topics it reads is known where its JVM is read, else only what all topics send beyond commits; then
  its share is taken of all that the cluster sends. In a cluster without any group it isn't known whether groups were read.
*/
with fetched as materialized (
  select
    hour,
    cluster,
    client_id,
    sum(bytes_per_second) as bytes_per_second,
    string_agg(distinct user_name, ', ' order by user_name) as user_names
  from (
    select
      hour,
      cluster,
      labels::jsonb ->> 'client' as client_id,
      nullif(labels::jsonb ->> 'user', '') as user_name,
      max(value) as bytes_per_second
    from metrics.broker_sample
    where hour = any(array(select :hour - n * interval '1 hour' from generate_series(0, 3) as n))
    and metric = 'client_fetch_bytes_per_second'
    group by hour, cluster, endpoint, labels
  ) as told
  where client_id <> ''
  group by hour, cluster, client_id
),

suspect as materialized (
  select
    cluster,
    client_id
  from fetched
  where bytes_per_second >= :floor_bytes_per_second
  group by cluster, client_id
),

-- Whose clients' rates are whole.
counted as (
  select
    cluster,
    bool_and(samples is not null)
    and cluster in (select f.cluster from fetched as f where f.hour = :hour) as is_whole
  from metrics.broker_hourly
  where hour = :hour
  group by cluster
),

groups as (
  select
    cluster,
    bool_or(members is null and protocol is distinct from 'streams') as lacks_members,
    bool_or(protocol = 'streams') as has_streams
  from inventory.consumer_group_hourly
  where hour = :hour
  group by cluster
),

member as (
  select
    cluster,
    client_id,
    string_agg(distinct group_id, ', ' order by group_id) as group_ids
  from inventory.consumer_member_hourly
  where hour = :hour
  group by cluster, client_id
),

-- By their defaults Flink and plain consumers put the group's name into the client's id, and Samza the job's with _ for -.
job as (
  select
    s.cluster,
    s.client_id,
    string_agg(g.group_id, ', ' order by g.group_id) as job_ids
  from suspect as s
  inner join public.commits_without_members(:hour) as g
    on s.cluster = g.cluster and strpos(translate(s.client_id, '-.', '__'), translate(g.group_id, '-.', '__')) > 0
  group by s.cluster, s.client_id
),

sent as materialized (
  select
    t.cluster,
    t.topic,
    t.bytes_out / nullif(t.covered_seconds, 0) as bytes_per_second,
    t.bytes_out / nullif(t.covered_seconds, 0)
    - coalesce(sum(r.fresh_bytes + r.backlog_bytes), 0) / nullif(t.covered_seconds, 0)
      as unaccounted_bytes_per_second
  from metrics.topic_hourly as t
  left join public.topic_readers_of(:hour) as r on t.cluster = r.cluster and t.topic = r.topic
  where t.hour = :hour and t.cluster in (select s.cluster from suspect as s)
  group by t.cluster, t.topic, t.bytes_out, t.covered_seconds
),

of_cluster as (
  select
    cluster,
    sum(bytes_per_second) as bytes_per_second,
    (
      array_agg(topic order by unaccounted_bytes_per_second desc, topic asc)
      filter (where unaccounted_bytes_per_second >= :floor_bytes_per_second)
    )[:3] as unaccounted_topics
  from sent
  group by cluster
),

-- By itself: else all clients of a cluster are compared with all suspects, merged by the cluster alone.
told_topic as materialized (
  select
    cluster,
    client_id,
    endpoint,
    topic
  from public.client_topics(:hour)
  where kind = 'consumer'
),

-- What it reads, where it tells that itself.
own as (
  select
    s.cluster,
    s.client_id,
    min(c.endpoint) as endpoint,
    string_agg(distinct c.topic, ', ' order by c.topic) as topics,
    jsonb_agg(distinct public.resource_key('topic', s.cluster, c.topic)) as affected
  from suspect as s
  inner join told_topic as c on s.cluster = c.cluster and s.client_id = c.client_id
  group by s.cluster, s.client_id
),

of_own as (
  select
    o.cluster,
    o.client_id,
    sum(t.bytes_per_second) as bytes_per_second
  from own as o
  cross join lateral jsonb_array_elements_text(o.affected) as k (key)
  inner join sent as t on k.key = public.resource_key('topic', t.cluster, t.topic)
  group by o.cluster, o.client_id
),

judged as (
  select
    s.cluster,
    s.client_id,
    coalesce(now.bytes_per_second, case when c.is_whole then 0 end) as fetched_bytes_per_second,
    now.user_names,
    coalesce(c.is_whole, false) as is_whole,
    g.cluster is null or g.lacks_members or (g.has_streams and s.client_id ~ :streams_member) as lacks_members,
    m.group_ids,
    j.job_ids,
    o.endpoint,
    o.topics as told_topics,
    o.affected,
    case when o.cluster is null then a.unaccounted_topics end as unaccounted_topics,
    nullif(case when o.cluster is null then a.bytes_per_second else p.bytes_per_second end, 0) as sent_bytes_per_second
  from suspect as s
  left join fetched as now
    on s.cluster = now.cluster and s.client_id = now.client_id and now.hour = :hour
  left join counted as c on s.cluster = c.cluster
  left join groups as g on s.cluster = g.cluster
  left join member as m on s.cluster = m.cluster and s.client_id = m.client_id
  left join job as j on s.cluster = j.cluster and s.client_id = j.client_id
  left join own as o on s.cluster = o.cluster and s.client_id = o.client_id
  left join of_own as p on s.cluster = p.cluster and s.client_id = p.client_id
  left join of_cluster as a on s.cluster = a.cluster
)

select
  case
    when group_ids is not null then 'tracked'
    when :known_untracked <> '' and client_id ~ :known_untracked then 'known'
    when :own_state <> '' and client_id ~ :own_state then 'own_state'
    when job_ids is not null then 'job'
    when fetched_bytes_per_second >= :floor_bytes_per_second and lacks_members then 'members_unknown'
    when fetched_bytes_per_second >= :floor_bytes_per_second
      and fetched_bytes_per_second >= :loud_share * sent_bytes_per_second then 'loud'
    when fetched_bytes_per_second >= :floor_bytes_per_second then 'untracked'
    when not is_whole then 'uncounted'
    else 'little'
  end as reason,
  cluster,
  client_id,
  fetched_bytes_per_second,
  fetched_bytes_per_second / sent_bytes_per_second as sent_ratio,
  sent_bytes_per_second,
  told_topics,
  array_to_string(unaccounted_topics, ', ') as unaccounted_topics,
  user_names,
  group_ids,
  job_ids,
  endpoint,
  affected
from judged

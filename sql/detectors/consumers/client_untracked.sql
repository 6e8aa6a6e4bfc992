/*
title: High-volume client without a consumer group
resource_kind: client
owner_role: platform
maturity: stable
is_mutation_tested: false
reads: [metrics.broker_sample, metrics.broker_hourly, metrics.topic_hourly, inventory.topic_hourly,
  inventory.consumer_group_hourly, inventory.consumer_member_hourly, metrics.consumer_group_hourly,
  metrics.consumer_partition_hourly, metrics.partition_hourly, metrics.client_topic_hourly]
params:
  floor_bytes_per_second:
    default: 1048576
    unit: bytes/s
    why: "1 MiB/s from all brokers together; less is an interactive session or a service that reads a small table"
  loud_share:
    default: 0.1
    unit: share of the bytes out of its topics
    why: "a tenth of the traffic without committed offsets deserves a question to the owner"
  known_untracked:
    default: "(^|-)spark-kafka-source-|replication-consumer$"
    unit: regex
    why: "clients that store offsets elsewhere: Spark in checkpoints, MirrorMaker in Kafka Connect's offset topics"
  own_state:
    default: "-(restore|global)-consumer$"
    unit: regex
    why: "Kafka Streams names its restore consumers and global consumers so"
  streams_member:
    default: "-StreamThread-[0-9]+-consumer$"
    unit: regex
    why: "Kafka Streams names its group members so; groups of the streams protocol do not report their members"
key_metrics: [fetched_bytes_per_second, sent_ratio, sent_bytes_per_second, consumed_topics, unaccounted_topics]
verdicts:
  high_share:
    status: firing
    severity: warning
    message: &message >
      Client {{ client_id }} fetches {{ fetched_bytes_per_second }} and belongs to no consumer group:
      its lag cannot be measured.
    details: &details
      - "{% if sent_ratio and consumed_topics %}The client receives {{ sent_ratio }} of the bytes out of its topics.{% endif %}"
      - "{% if sent_ratio and not consumed_topics %}The client receives {{ sent_ratio }} of the bytes out of the cluster.{% endif %}"
      - "{% if consumed_topics %}Its own metrics report the topics {{ consumed_topics }}.{% endif %}"
      - "{% if unaccounted_topics %}Committed offsets do not account for bytes out of {{ unaccounted_topics }}.{% endif %}"
      - "{% if user_names %}Authenticated as {{ user_names }}.{% endif %}"
    impact: &impact >
      No alert fires when the client falls behind, or when retention deletes records before it reads them.
    actions: &actions
      - "Identify the owner of client {{ client_id }}{% if endpoint %}, which runs in the JVM at {{ endpoint }}{% endif %}."
      - "Move the client into a consumer group that commits its offsets."
      - "If the client stores its offsets elsewhere, add its ID to the parameter known_untracked."
    commands: &commands
      - "kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --all-groups --members | grep -F -- {{ client_id }}"
      - "kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --describe --entity-type clients --entity-name {{ client_id }}"
  untracked:
    status: firing
    severity: info
    message: *message
    details: *details
    impact: *impact
    actions: *actions
    commands: *commands
  tracked: {status: ok, message: "Client {{ client_id }} is a member of {{ group_ids }}."}
  exempt: {status: ok, message: "Client {{ client_id }} stores its offsets outside Kafka (parameter known_untracked)."}
  streams_state: {status: ok, message: "Client {{ client_id }} maintains Kafka Streams state and needs no offsets."}
  commits_without_members:
    status: ok
    message: "Client {{ client_id }} belongs to {{ job_ids }}, which commits offsets without group members."
  low_rate: {status: ok, message: "Client {{ client_id }} fetches {{ fetched_bytes_per_second }}, below {{ floor_bytes_per_second }}."}
  rate_unknown:
    status: unknown
    message: "Not evaluated: not all brokers reported the fetch rate of client {{ client_id }} over JMX."
  members_unknown:
    status: unknown
    message: >
      Not evaluated: client {{ client_id }} fetches {{ fetched_bytes_per_second }}, but the members of some consumer
      groups were not reported.
open_after_hours: 3
clear_after_hours: 3
description: |
  Fires for a client that fetches at least floor_bytes_per_second from all brokers together and is a member of no
  consumer group. The rates are the per-client metrics of the brokers. Evaluated are clients that reached this rate in
  this hour or in one of the three hours before. The severity is warning from loud_share of the bytes out of its topics.
runbook: |
  ## Meaning
  A client fetches a high volume without a consumer group, so its lag is not measurable.

  ## Impact
  No alert fires when it falls behind or loses records to retention.

  ## Diagnosis
  1. Check the client ID, the authenticated user, and the topics with bytes that no commit accounts for.
  2. If the owner is unknown, set kafka.request.logger to DEBUG on a broker. The request log has the client address.

  ## Mitigation
  1. Move the client into a consumer group that commits its offsets.
  2. If the client stores its offsets elsewhere and its lag is monitored, add its ID to known_untracked.
limitations: |
  Brokers report rates per client only with quotas; a generous default quota is enough. With quotas per user only, they
  report no client IDs. The rate covers the seconds before the collection run, so a client that reads in bursts appears in
  some hours only. A client with the ID of a group member counts as that member. Members of share groups are not reported:
  add their client IDs to known_untracked. The topics of a client are known if its JVM is monitored. Otherwise its share
  refers to all bytes out of the cluster. In a cluster without any consumer group, it is not known whether the groups were
  readable.
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
  ) as labeled
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

-- Whether all brokers of the cluster reported rates by client.
coverage as (
  select
    cluster,
    bool_and(samples is not null)
    and cluster in (select f.cluster from fetched as f where f.hour = :hour) as is_complete
  from metrics.broker_hourly
  where hour = :hour
  group by cluster
),

groups as (
  select
    cluster,
    bool_or(members is null and coalesce(protocol not in ('streams', 'share'), true)) as is_members_unknown,
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

cluster_rate as (
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
consumed_topic as materialized (
  select
    cluster,
    client_id,
    endpoint,
    topic
  from public.client_topics(:hour)
  where kind = 'consumer'
),

-- The topics that the client reads, where its own metrics report them.
consumed as (
  select
    s.cluster,
    s.client_id,
    min(c.endpoint) as endpoint,
    string_agg(distinct c.topic, ', ' order by c.topic) as topics,
    jsonb_agg(distinct public.resource_key('topic', s.cluster, c.topic)) as affected
  from suspect as s
  inner join consumed_topic as c on s.cluster = c.cluster and s.client_id = c.client_id
  group by s.cluster, s.client_id
),

consumed_rate as (
  select
    o.cluster,
    o.client_id,
    sum(t.bytes_per_second) as bytes_per_second
  from consumed as o
  cross join lateral jsonb_array_elements_text(o.affected) as k (key)
  inner join sent as t on k.key = public.resource_key('topic', t.cluster, t.topic)
  group by o.cluster, o.client_id
),

measured as (
  select
    s.cluster,
    s.client_id,
    coalesce(now.bytes_per_second, case when c.is_complete then 0 end) as fetched_bytes_per_second,
    now.user_names,
    coalesce(c.is_complete, false) as is_complete,
    g.cluster is null or g.is_members_unknown or (g.has_streams and s.client_id ~ :streams_member) as is_members_unknown,
    m.group_ids,
    j.job_ids,
    o.endpoint,
    o.topics as consumed_topics,
    o.affected,
    case when o.cluster is null then a.unaccounted_topics end as unaccounted_topics,
    nullif(case when o.cluster is null then a.bytes_per_second else p.bytes_per_second end, 0) as sent_bytes_per_second
  from suspect as s
  left join fetched as now
    on s.cluster = now.cluster and s.client_id = now.client_id and now.hour = :hour
  left join coverage as c on s.cluster = c.cluster
  left join groups as g on s.cluster = g.cluster
  left join member as m on s.cluster = m.cluster and s.client_id = m.client_id
  left join job as j on s.cluster = j.cluster and s.client_id = j.client_id
  left join consumed as o on s.cluster = o.cluster and s.client_id = o.client_id
  left join consumed_rate as p on s.cluster = p.cluster and s.client_id = p.client_id
  left join cluster_rate as a on s.cluster = a.cluster
)

select
  case
    when group_ids is not null then 'tracked'
    when :known_untracked <> '' and client_id ~ :known_untracked then 'exempt'
    when :own_state <> '' and client_id ~ :own_state then 'streams_state'
    when job_ids is not null then 'commits_without_members'
    when fetched_bytes_per_second >= :floor_bytes_per_second and is_members_unknown then 'members_unknown'
    when fetched_bytes_per_second >= :floor_bytes_per_second
      and fetched_bytes_per_second >= :loud_share * sent_bytes_per_second then 'high_share'
    when fetched_bytes_per_second >= :floor_bytes_per_second then 'untracked'
    when not is_complete then 'rate_unknown'
    else 'low_rate'
  end as reason,
  cluster,
  client_id,
  fetched_bytes_per_second,
  fetched_bytes_per_second / sent_bytes_per_second as sent_ratio,
  sent_bytes_per_second,
  consumed_topics,
  array_to_string(unaccounted_topics, ', ') as unaccounted_topics,
  user_names,
  group_ids,
  job_ids,
  endpoint,
  affected
from measured

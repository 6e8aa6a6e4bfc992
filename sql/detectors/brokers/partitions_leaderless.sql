/*
title: Offline partitions or unclean leader election
resource_kind: cluster
owner_role: platform
maturity: stable
reads: [metrics.partition_hourly, metrics.broker_hourly, metrics.consumer_partition_hourly, inventory.topic_hourly]
params:
  look_back:
    default: 6
    unit: h
    why: "a topic not reported for so long counts as new, with leaders still to be elected; some runs may have failed"
key_metrics: [leaderless_partitions, no_listener_partitions, unclean_elections, last_leaders, waiting_groups]
verdicts:
  leaderless:
    status: firing
    severity: critical
    message: "{{ leaderless_partitions | counted('partition') }} of {{ topics | counted('topic') }} {{ leaderless_partitions | plural('has', 'have') }} no leader: {{ worst_topics }}."
    details: &details
      - "{% if last_leaders %}Broker IDs of the last leaders: {{ last_leaders }}.{% endif %}"
      - "{% if waiting_groups %}Consumer groups that read these partitions: {{ waiting_groups }}.{% endif %}"
      - "{% if applications %}Changelogs of these applications are affected: {{ applications }}.{% endif %}"
      - "{% if unclean_elections %}{{ unclean_elections | counted('unclean leader election') }} occurred in this hour, and records may be lost.{% endif %}"
      - "{% if risen_topics %}Topics led by a replica that was out of sync an hour ago: {{ risen_topics }}.{% endif %}"
    impact: "Producers and consumers cannot use these partitions."
    actions:
      - "Start the broker that led these partitions last, or another member of their ISR."
      - "Last resort: run an unclean leader election; records that the new leader does not have are lost."
      - "Prevent it: use three replicas and min.insync.replicas=2."
    commands: &unavailable
      - "kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --describe --unavailable-partitions"
  no_listener:
    status: firing
    severity: critical
    message: "{{ no_listener_partitions | counted('partition') }} of {{ topics | counted('topic') }} {{ no_listener_partitions | plural('has', 'have') }} a leader without the listener of {{ bootstrap_servers }}: {{ worst_topics }}."
    details: *details
    impact: "Clients that connect through this listener cannot read or write these partitions."
    actions:
      - "Compare listeners and advertised.listeners in server.properties of these leaders with those of a working broker."
      - "Configure the same listeners on all brokers and restart the brokers one by one."
    commands: *unavailable
  unclean:
    status: firing
    severity: warning
    message: "{{ unclean_elections | counted('unclean leader election') }} occurred in cluster {{ cluster }} in this hour: out-of-sync replicas became leaders."
    details:
      - "{% if risen_topics %}Topics led by a replica that was out of sync an hour ago: {{ risen_topics }}.{% endif %}"
      - "{% if not risen_topics and allowing_topics %}Topics that allow unclean elections: {{ allowing_topics }}.{% endif %}"
      - "{% if not risen_topics and not allowing_topics %}The brokers do not report the partitions.{% endif %}"
    impact: "Records that only the previous leader had are lost, and consumers may read some offsets again."
    actions:
      - "Replay the lost records from their source where they matter."
      - "Set unclean.leader.election.enable=false."
      - "Use three replicas and min.insync.replicas=2 for these topics."
    commands:
      - "kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --describe --topics-with-overrides"
      - "kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --describe --all --entity-type brokers | grep unclean.leader.election.enable"
  new_topics:
    status: ok
    message: "{{ leaderless_partitions | counted('partition') }} {{ leaderless_partitions | plural('has', 'have') }} no leader yet; their topics are being created."
  all_led: {status: ok, message: "Every partition of cluster {{ cluster }} has a leader ({{ partitions }} in total)."}
  short_history:
    status: unknown
    message: "Not evaluated: {{ leaderless_partitions | counted('partition') }} without a leader may be new: no partitions were reported in the {{ look_back }} h before."
causes:
  offline_partition_stops_consumers: [leaderless]
caused_by:
  broker_down_leaves_partitions_offline: [leaderless]
open_after_hours: 1
clear_after_hours: 1
description: |
  A partition has no leader if the cluster's metadata names none in two requests some seconds apart, and if its topic
  existed within look_back hours before. A leader without the listener of our connection (LISTENER_NOT_FOUND) is a verdict
  of its own, because brokers that do have this listener can run at the same time. Unclean elections are those that the
  controllers counted in the hour, the highest count of one controller. Records may be lost where the current leader was
  out of sync an hour ago.
runbook: |
  ## Meaning
  Partitions are offline (no leader), or a replica that was out of sync became leader.
  ## Impact
  Offline partitions accept no reads and no writes. After an unclean election records of the previous leader are lost.
  ## Diagnosis
  1. Check which brokers are down. The controller log shows why no other replica was elected: no ISR member was alive.
  2. If a broker does not start: check its disk, open files, and memory.
  ## Mitigation
  1. Start the brokers that led these partitions last.
  2. If no ISR member returns: `kafka-leader-election.sh --election-type unclean --topic TOPIC --partition N`, one partition
     at a time. Records that only the previous leader had are lost, and consumers may see lower offsets.
  3. Afterwards: three replicas, min.insync.replicas=2, and unclean.leader.election.enable=false.
limitations: |
  The state is that of the moment when the metadata was read; seconds without a leader between two runs are not detected.
  Brokers before Kafka 2.2 do not distinguish a missing listener from a missing leader. Unclean elections are known only
  where the controllers are read over JMX: with ZooKeeper, and with KRaft from Kafka 3.9 on. Versions up to 4.0 may count
  a clean election too (KAFKA-19212). The affected partitions are not exposed: a topic can be named although its leader
  caught up in time, and can be missing if its leader fell out of the ISR within the hour.
*/
with unled as materialized (
  select
    cluster,
    topic,
    partition,
    isr,
    coalesce(leader_error = 'LISTENER_NOT_FOUND', false) as has_leader
  from metrics.partition_hourly
  where hour = :hour and leader is null
),

counted as (
  select
    cluster,
    count(*) as partitions,
    count(*) filter (where leader is null and leader_error is distinct from 'LISTENER_NOT_FOUND')
      as leaderless_partitions,
    count(*) filter (where leader is null and leader_error = 'LISTENER_NOT_FOUND') as no_listener_partitions
  from metrics.partition_hourly
  where hour = :hour
  group by cluster
),

-- A topic that did not exist before is being created and has no leaders yet.
past as materialized (
  select
    l.cluster,
    l.topic,
    l.partition,
    l.isr,
    l.has_leader,
    (array_agg(p.leader order by p.hour desc) filter (where p.leader is not null))[1] as last_leader
  from unled as l
  left join metrics.partition_hourly as p
    on
      l.cluster = p.cluster and l.topic = p.topic and l.partition = p.partition
      and p.hour >= :hour - make_interval(hours => cast(:look_back as integer))
      and p.hour < :hour
  group by l.cluster, l.topic, l.partition, l.isr, l.has_leader
  having l.has_leader or count(p.hour) > 0
),

-- Where a cluster has both kinds, partitions without any leader come first.
reported as materialized (
  select *
  from (
    select
      *,
      bool_and(has_leader) over (partition by cluster) as all_have_leaders
    from past
  ) as one
  where has_leader = all_have_leaders
),

open_finding as (
  select
    cluster,
    bool_and(has_leader) as all_have_leaders,
    count(*) as partitions,
    count(distinct topic) as topics,
    string_agg(distinct last_leader::text, ', ') as last_leaders,
    count(*) filter (where isr = 0) as without_isr,
    (array_agg(jsonb_build_object('topic', topic, 'partition', partition) order by topic, partition))[:100] as affected
  from reported
  group by cluster
),

topic as (
  select
    cluster,
    topic,
    row_number() over (partition by cluster order by count(*) desc, topic asc) as place
  from reported
  group by cluster, topic
),

named as (
  select
    t.cluster,
    string_agg(t.topic, ', ' order by t.place) filter (where t.place <= 3) as worst_topics,
    string_agg(distinct i.application_id, ', ') filter (where i.kind = 'changelog') as applications
  from topic as t
  left join inventory.topic_hourly as i
    on t.cluster = i.cluster and t.topic = i.topic and i.hour = :hour
  group by t.cluster
),

waiting as (
  select
    cluster,
    string_agg(group_id, ', ' order by group_id) as waiting_groups
  from (
    select distinct
      p.cluster,
      c.group_id
    from reported as p
    inner join metrics.consumer_partition_hourly as c
      on p.cluster = c.cluster and p.topic = c.topic and p.partition = c.partition
    where c.hour = :hour
  ) as one
  group by cluster
),

-- With KRaft each controller counts all elections, with ZooKeeper only the active one.
elected as materialized (
  select
    cluster,
    max(unclean_elections) as unclean_elections
  from metrics.broker_hourly
  where hour = :hour and unclean_elections > 0
  group by cluster
),

-- Partitions led by a broker that was out of sync an hour ago.
risen as materialized (
  select
    n.cluster,
    n.topic,
    n.partition,
    count(*) over (partition by n.cluster, n.topic) as of_topic
  from elected as e
  inner join metrics.partition_hourly as n on n.hour = :hour and e.cluster = n.cluster
  inner join metrics.partition_hourly as b
    on
      b.hour = :hour - interval '1 hour'
      and n.cluster = b.cluster and n.topic = b.topic and n.partition = b.partition
  where b.missing_brokers @> to_jsonb(n.leader)
),

lost as (
  select
    cluster,
    (array_agg(jsonb_build_object('topic', topic, 'partition', partition) order by topic, partition))[:100] as affected
  from risen
  group by cluster
),

losing as (
  select
    cluster,
    string_agg(topic, ', ' order by place) filter (where place <= 3) as risen_topics
  from (
    select
      cluster,
      topic,
      row_number() over (partition by cluster order by of_topic desc, topic asc) as place
    from risen
    group by cluster, topic, of_topic
  ) as one
  group by cluster
),

allowing as (
  select
    cluster,
    string_agg(topic, ', ' order by place) filter (where place <= 3) as allowing_topics
  from (
    select
      e.cluster,
      i.topic,
      row_number() over (partition by e.cluster order by i.topic) as place
    from elected as e
    inner join inventory.topic_hourly as i on i.hour = :hour and e.cluster = i.cluster
    where i.configs -> 'unclean.leader.election.enable' ->> 'value' = 'true'
  ) as one
  group by cluster
)

select
  case
    when not s.all_have_leaders then 'leaderless'
    when s.all_have_leaders then 'no_listener'
    when e.unclean_elections is not null then 'unclean'
    when c.leaderless_partitions = 0 then 'all_led'
    when
      not exists (
        select from metrics.partition_hourly as p
        where
          p.cluster = c.cluster
          and p.hour >= :hour - make_interval(hours => cast(:look_back as integer))
          and p.hour < :hour
      ) then 'short_history'
    else 'new_topics'
  end as reason,
  c.cluster,
  case when s.all_have_leaders then c.leaderless_partitions else coalesce(s.partitions, c.leaderless_partitions) end
    as leaderless_partitions,
  c.no_listener_partitions,
  c.partitions,
  s.topics,
  n.worst_topics,
  s.last_leaders,
  s.without_isr,
  w.waiting_groups,
  n.applications,
  e.unclean_elections,
  l.risen_topics,
  a.allowing_topics,
  coalesce(s.affected, o.affected) as affected
from counted as c
left join open_finding as s on c.cluster = s.cluster
left join named as n on c.cluster = n.cluster
left join waiting as w on c.cluster = w.cluster
left join elected as e on c.cluster = e.cluster
left join losing as l on c.cluster = l.cluster
left join lost as o on c.cluster = o.cluster
left join allowing as a on c.cluster = a.cluster

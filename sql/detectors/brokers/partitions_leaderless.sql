/*
title: Partitions have no leader, or one that lacks records
resource_kind: cluster
owner_role: platform
maturity: stable
reads: [metrics.partition_hourly, metrics.broker_hourly, metrics.consumer_partition_hourly, inventory.topic_hourly]
params:
  look_back: {default: 6, unit: h, why: "a topic not seen for so long is taken for a new one, whose leaders are yet to be elected; some runs may have failed"}
key_metrics: [leaderless_partitions, no_listener_partitions, unclean_elections, last_leaders, waiting_groups]
verdicts:
  leaderless:
    status: firing
    severity: critical
    message: "{{ leaderless_partitions | counted('partition') }} of {{ topics | counted('topic') }} ({{ worst_topics }}) {% if leaderless_partitions == 1 %}has{% else %}have{% endif %} no leader: nothing is written or read there.{% if last_leaders %} Last led by broker {{ last_leaders }}.{% endif %}{% if waiting_groups %} {{ waiting_groups }} can't read on.{% endif %}{% if applications %} State of {{ applications }} lies there.{% endif %}{% if unclean_elections %} {{ unclean_elections | counted('unclean election') }} in the hour: records may be lost{% if risen_topics %} on {{ risen_topics }}{% endif %}.{% endif %}"
    actions:
      - "Start the broker that led them last, or another member of their in-sync replicas. An unclean election is the last resort: records that the new leader lacks are lost."
    commands: &unavailable
      - "kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --describe --unavailable-partitions"
  no_listener:
    status: firing
    severity: critical
    message: "{{ no_listener_partitions | counted('partition') }} of {{ topics | counted('topic') }} ({{ worst_topics }}) {{ 'has' if no_listener_partitions == 1 else 'have' }} a leader, but not one with the listener that {{ bootstrap_servers }} belongs to: who comes by that one neither writes nor reads there.{% if last_leaders %} Last led by broker {{ last_leaders }}.{% endif %}{% if waiting_groups %} {{ waiting_groups }} may not read on.{% endif %}{% if applications %} State of {{ applications }} lies there.{% endif %}{% if unclean_elections %} {{ unclean_elections | counted('unclean election') }} in the hour: records may be lost{% if risen_topics %} on {{ risen_topics }}{% endif %}.{% endif %}"
    actions:
      - "Give all brokers the same listeners: one lacks in listeners or advertised.listeners of those that lead these partitions. Compare the two settings in their server.properties with those of a broker that answers, then restart them one by one."
    commands: *unavailable
  unclean:
    status: firing
    severity: warning
    message: "{{ unclean_elections | counted('unclean election') }} in the hour, of leaders that weren't in sync: records may be lost on {% if risen_topics %}{{ risen_topics }}{% elif allowing_topics %}topics that allow it ({{ allowing_topics }}){% else %}partitions that the brokers don't name{% endif %}."
    actions:
      - "What the old leaders alone had is gone, and readers may have gone back: write it again from its source where it matters. Then turn unclean.leader.election.enable off, and give these topics three replicas and min.insync.replicas 2, so that it isn't needed."
    commands:
      - "kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --describe --topics-with-overrides"
      - "kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --describe --all --entity-type brokers | grep unclean.leader.election.enable"
  just_made: {status: ok, message: "{{ leaderless_partitions | counted('partition') }} without a leader, all of topics that weren't there before."}
  led: {status: ok, message: "All {{ partitions }} partitions have a leader."}
  short_history: {status: unknown, message: "{{ leaderless_partitions | counted('partition') }} without a leader, but whether their topics are just being made isn't known: nothing is known of the {{ look_back }} h before."}
causes:
  offline_partition_stops_consumers: [leaderless]
caused_by:
  broker_down_leaves_partitions_offline: [leaderless]
open_after_hours: 1
clear_after_hours: 1
description: |
  A partition for which the cluster's metadata name no leader, at two looks some seconds apart, and whose topic was there
  within look_back hours before. Where the metadata say that the leader has no listener of the kind by which we ask
  (LISTENER_NOT_FOUND), brokers that have it lack something else: that is told by itself. Unclean elections are what the
  controllers counted in the hour, the most that one of them did; records may be lost where the leader of now lacked
  records, or was out of sync, an hour ago.
runbook: |
  1. Which brokers are down? Those that led last come first: start them. The log of the controller says why no other
     replica was elected: none in the ISR was alive.
  2. A broker that doesn't start: look at its disk, its open files, its memory.
  3. If no member of the ISR comes back: kafka-leader-election.sh --election-type unclean for the topics named, one by
     one. What the old leader alone had is lost, and readers may see offsets go back.
  4. Afterwards: three replicas, min.insync.replicas 2, and no unclean.leader.election.enable.
limitations: |
  It is how things stood when the metadata were read: seconds without a leader between two runs aren't seen. Brokers
  before Kafka 2.2 don't tell a leader without our listener from none. Unclean elections are seen where the controllers
  are read over JMX: in clusters of ZooKeeper, and of KRaft from Kafka 3.9 on; those up to 4.0 may count a clean one too
  (KAFKA-19212). Which partitions they were isn't told: a topic is named for a leader that was out of sync an hour ago and
  may have caught up before, and isn't for one that fell out and came to lead within the hour.
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

-- Where there is no leader, the topic was there before: else it is just being made.
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

-- Of a cluster that has both kinds those without a leader are told.
told as materialized (
  select *
  from (
    select
      *,
      bool_and(has_leader) over (partition by cluster) as have_leaders
    from past
  ) as one
  where has_leader = have_leaders
),

open_finding as (
  select
    cluster,
    bool_and(has_leader) as have_leaders,
    count(*) as partitions,
    count(distinct topic) as topics,
    string_agg(distinct last_leader::text, ', ') as last_leaders,
    count(*) filter (where isr = 0) as without_isr,
    (array_agg(jsonb_build_object('topic', topic, 'partition', partition) order by topic, partition))[:100] as affected
  from told
  group by cluster
),

topic as (
  select
    cluster,
    topic,
    row_number() over (partition by cluster order by count(*) desc, topic asc) as place
  from told
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
    from told as p
    inner join metrics.consumer_partition_hourly as c
      on p.cluster = c.cluster and p.topic = c.topic and p.partition = c.partition
    where c.hour = :hour
  ) as one
  group by cluster
),

-- Each controller of KRaft counts all elections, of ZooKeeper's the active one.
elected as materialized (
  select
    cluster,
    max(unclean_elections) as unclean_elections
  from metrics.broker_hourly
  where hour = :hour and unclean_elections > 0
  group by cluster
),

-- Led by a broker that was out of sync an hour ago.
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
    when not s.have_leaders then 'leaderless'
    when s.have_leaders then 'no_listener'
    when e.unclean_elections is not null then 'unclean'
    when c.leaderless_partitions = 0 then 'led'
    when
      not exists (
        select from metrics.partition_hourly as p
        where
          p.cluster = c.cluster
          and p.hour >= :hour - make_interval(hours => cast(:look_back as integer))
          and p.hour < :hour
      ) then 'short_history'
    else 'just_made'
  end as reason,
  c.cluster,
  case when s.have_leaders then c.leaderless_partitions else coalesce(s.partitions, c.leaderless_partitions) end
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

/*
title: Partitions have no leader
about: cluster
owner: platform
maturity: stable
reads: [metrics.partition_hourly, metrics.consumer_partition_hourly, inventory.topic_hourly]
params:
  look_back: {default: 6, unit: h, why: "a topic not seen for so long is taken for a new one, whose leaders are yet to be elected; some runs may have failed"}
convinces: [leaderless_partitions, topics, last_leaders, without_isr, waiting_groups]
says:
  leaderless:
    status: alarm
    severity: critical
    reason: "{{ leaderless_partitions | counted('partition') }} of {{ topics | counted('topic') }} ({{ worst_topics }}) {% if leaderless_partitions == 1 %}has{% else %}have{% endif %} no leader: nothing is written or read there.{% if last_leaders %} Last led by broker {{ last_leaders }}.{% endif %}{% if waiting_groups %} {{ waiting_groups }} can't read on.{% endif %}{% if applications %} State of {{ applications }} lies there.{% endif %}"
    cure: "Start the broker that led them last, or another member of their in-sync replicas. An unclean election is the last resort: records that the new leader lacks are lost."
    commands:
      - "kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --describe --unavailable-partitions"
  just_made: {status: ok, reason: "{{ leaderless_partitions | counted('partition') }} without a leader, all of topics that weren't there before."}
  led: {status: ok, reason: "All {{ partitions }} partitions have a leader."}
  short_history: {status: skip, reason: "{{ leaderless_partitions | counted('partition') }} without a leader, but whether their topics are just being made isn't known: nothing is known of the {{ look_back }} h before."}
causes:
  leaderless_stops_readers: [leaderless]
effect_of:
  broker_leaves_partitions: [leaderless]
open_after_hours: 1
clear_after_hours: 1
rule: |
  A partition for which the cluster's metadata name no leader, and whose topic was there within look_back hours before.
runbook: |
  1. Which brokers are down? Those that led last come first: start them. The log of the controller says why no other
     replica was elected: none in the ISR was alive.
  2. A broker that doesn't start: look at its disk, its open files, its memory.
  3. If no member of the ISR comes back: kafka-leader-election.sh --election-type unclean for the topics named, one by
     one. What the old leader alone had is lost, and readers may see offsets go back.
  4. Afterwards: three replicas, min.insync.replicas 2, and no unclean.leader.election.enable.
blind_spots: |
  It is how things stood when the metadata were read: seconds without a leader between two runs aren't seen. A leader
  that has no listener for us, and elections that were unclean, aren't told yet. A topic that is being deleted at that
  very moment looks the same.
*/
with leaderless as materialized (
  select
    cluster,
    topic,
    partition,
    isr
  from metrics.partition_hourly
  where hour = cast(:hour as timestamptz) and leader is null
),

counted as (
  select
    cluster,
    count(*) as partitions,
    count(*) filter (where leader is null) as leaderless_partitions
  from metrics.partition_hourly
  where hour = cast(:hour as timestamptz)
  group by cluster
),

past as materialized (
  select
    l.cluster,
    l.topic,
    l.partition,
    l.isr,
    (array_agg(p.leader order by p.hour desc) filter (where p.leader is not null))[1] as last_leader
  from leaderless as l
  inner join metrics.partition_hourly as p
    on l.cluster = p.cluster and l.topic = p.topic and l.partition = p.partition
  where p.hour >= cast(:hour as timestamptz) - make_interval(hours => cast(:look_back as integer))
  and p.hour < cast(:hour as timestamptz)
  group by l.cluster, l.topic, l.partition, l.isr
),

standing as (
  select
    cluster,
    count(*) as leaderless_partitions,
    count(distinct topic) as topics,
    string_agg(distinct last_leader::text, ', ') as last_leaders,
    count(*) filter (where isr = 0) as without_isr,
    (array_agg(jsonb_build_object('topic', topic, 'partition', partition) order by topic, partition))[:100] as affected
  from past
  group by cluster
),

topic as (
  select
    cluster,
    topic,
    count(*) as partitions,
    row_number() over (partition by cluster order by count(*) desc, topic asc) as place
  from past
  group by cluster, topic
),

named as (
  select
    t.cluster,
    string_agg(t.topic, ', ' order by t.place) filter (where t.place <= 3) as worst_topics,
    string_agg(distinct i.application_id, ', ') filter (where i.kind = 'changelog') as applications
  from topic as t
  left join inventory.topic_hourly as i
    on t.cluster = i.cluster and t.topic = i.topic and i.hour = cast(:hour as timestamptz)
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
    from past as p
    inner join metrics.consumer_partition_hourly as c
      on p.cluster = c.cluster and p.topic = c.topic and p.partition = c.partition
    where c.hour = cast(:hour as timestamptz)
  ) as one
  group by cluster
)

select
  case
    when s.cluster is not null then 'leaderless'
    when c.leaderless_partitions = 0 then 'led'
    when
      not exists (
        select from metrics.partition_hourly as p
        where
          p.cluster = c.cluster
          and p.hour >= cast(:hour as timestamptz) - make_interval(hours => cast(:look_back as integer))
          and p.hour < cast(:hour as timestamptz)
      ) then 'short_history'
    else 'just_made'
  end as because,
  c.cluster,
  coalesce(s.leaderless_partitions, c.leaderless_partitions) as leaderless_partitions,
  c.partitions,
  s.topics,
  n.worst_topics,
  s.last_leaders,
  s.without_isr,
  w.waiting_groups,
  n.applications,
  s.affected
from counted as c
left join standing as s on c.cluster = s.cluster
left join named as n on c.cluster = n.cluster
left join waiting as w on c.cluster = w.cluster

/*
title: Partitions lack a broker's replicas
resource_kind: broker
owner_role: platform
maturity: stable
reads: [metrics.broker_hourly, metrics.partition_hourly, inventory.topic_hourly]
params:
  allowed: {default: 0, unit: partitions, why: "every under-replicated partition is one failure nearer to data loss"}
  start_minutes: {default: 15, unit: min, why: "so long a broker that was restarted may take to catch up"}
  roll_minutes: {default: 60, unit: min, why: "a rolling restart comes to the next broker within an hour"}
  reassignment_days: {default: 7, unit: d, why: "so long moving many partitions may take; before it, topics had the replicas that they are to have"}
key_metrics: [missing_partitions, under_replicated_partitions, under_min_isr_partitions, missing_topics, leaders]
verdicts:
  missing:
    status: firing
    severity: warning
    message: "{{ missing_partitions | counted('partition') }} of {{ worst_topics }} {{ 'lacks' if missing_partitions == 1 else 'lack' }} the replica on broker {{ broker_id }}{% if is_silent %}, which doesn't answer over JMX either{% endif %}."
    actions:
      - &start "Is broker {{ broker_id }} down? Start it. Else it can't keep up: look at its volume, its network, its CPU."
    commands: &describe
      - "kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --describe --under-replicated-partitions"
  read_only:
    status: firing
    severity: critical
    message: "{{ missing_partitions | counted('partition') }} of {{ worst_topics }} {{ 'lacks' if missing_partitions == 1 else 'lack' }} the replica on broker {{ broker_id }}; {{ under_min_isr_partitions }} are below min.insync.replicas and take no writes with acks=all."
    actions:
      - *start
    commands: &below ["kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --describe --under-min-isr-partitions"]
  followers_missing:
    status: firing
    severity: warning
    message: "{{ under_replicated_partitions }} of the {{ leaders }} partitions that it leads lack replicas; whose they are the cluster didn't say."
    actions:
      - &follower "Start the broker that is down; else look for a follower that can't keep up: its volume, its network, its CPU."
    commands: *describe
  followers_read_only:
    status: firing
    severity: critical
    message: "{{ under_replicated_partitions }} of the {{ leaders }} partitions that it leads lack replicas; {{ under_min_isr_partitions }} are below min.insync.replicas and take no writes with acks=all."
    actions:
      - *follower
    commands: *below
  tolerated: {status: ok, message: "{{ missing_partitions or under_replicated_partitions }} partitions lack replicas, {{ allowed }} may."}
  starting: {status: ok, message: "It was started at {{ process_started_at }} and catches up: {{ missing_partitions | counted('partition') }} to go."}
  rolling: {status: ok, message: "{{ missing_partitions | counted('partition') }} {{ 'lacks' if missing_partitions == 1 else 'lack' }} its replica while it is restarted: so {{ 'was' if restarted_peers == 1 else 'were' }} {{ restarted_peers | counted('peer') }} in the hour before, one after the other."}
  whole: {status: ok, message: "No partition lacks its replicas."}
  silent: {status: unknown, message: "The broker did not answer over JMX, and the cluster didn't say whose replicas are in sync."}
  untold: {status: unknown, message: "The broker did not tell its under-replicated partitions."}
caused_by:
  broker_down_loses_replicas: [missing, read_only]
  disk_slows_broker: [missing, read_only]
  cpu_slows_broker: [missing, read_only]
  broker_slows_flushes: [missing, read_only]
  leader_loses_followers: [missing, read_only]
  reassignment_slows_brokers: [missing, read_only]
  broker_loses_replicas: [followers_missing, followers_read_only]
open_after_hours: 1
clear_after_hours: 2
description: |
  A broker is judged by its own replicas: partitions of which one is on it and not in sync. One broker that is down is one
  finding, not one of each of its peers. Where the cluster doesn't tell who is in sync, brokers are judged by how many of
  the partitions that they lead lack any replica. Critical: below min.insync.replicas. Not counted: a partition that has
  more replicas than its topic ever had within reassignment_days and hasn't had as many in sync yet (a reassignment adds
  some), and one without any in sync (it is being made; else it has no leader, which is partitions_leaderless'). A
  single broker that is silent while peers were restarted within roll_minutes is taken for the next of them.
runbook: |
  1. Is the broker down? Start it.
  2. Otherwise it can't keep up: its volume's queue and burst balance, its network, its CPU.
  3. Replicas that a reassignment adds aren't counted.
limitations: |
  Who is in sync is asked once an hour. A partition counts unless its leader's JMX says that it lacked nothing in one of
  the samples of the run; without JMX a rolling restart at that moment is seen as an alarm, and so is the first broker of
  one. What came and went between two runs isn't seen at all.
*/
with incomplete as materialized (
  select distinct cluster, topic
  from metrics.partition_hourly
  where hour = :hour and missing_brokers is not null
),

-- Only of these: a week of all topics is long.
before as (
  select
    cluster,
    topic,
    min(replication_factor) as replication_factor
  from incomplete
  inner join inventory.topic_hourly using (cluster, topic)
  where hour > :hour - make_interval(days => cast(:reassignment_days as integer))
  and hour <= :hour
  group by cluster, topic
),

lacking as (
  select
    p.cluster,
    m.broker_id,
    p.topic,
    p.partition,
    p.isr < (t.configs -> 'min.insync.replicas' ->> 'value')::integer as is_below_min,
    t.observed_at
  from metrics.partition_hourly as p
  inner join inventory.topic_hourly as t using (hour, cluster, topic)
  inner join before as b using (cluster, topic)
  cross join lateral jsonb_array_elements_text(p.missing_brokers) as m (broker_id)
  left join metrics.broker_hourly as l on p.hour = l.hour and p.cluster = l.cluster and p.leader = l.broker_id
  where
    p.hour = :hour
    and p.isr > 0
    and (
      p.replicas <= b.replication_factor
      or p.replicas <= (
        select max(e.isr)
        from metrics.partition_hourly as e
        where e.cluster = p.cluster and e.topic = p.topic and e.partition = p.partition
        and e.hour > p.hour - make_interval(days => cast(:reassignment_days as integer)) and e.hour < p.hour
      )
    )
    and l.under_replicated_partitions is distinct from 0  -- its leader saw it come back
),

missing as (
  select
    cluster,
    broker_id,
    count(*) as missing_partitions,
    count(distinct topic) as missing_topics,
    count(*) filter (where is_below_min) as below_min_partitions,
    max(observed_at) as observed_at,
    (array_agg(jsonb_build_object('topic', topic, 'partition', partition) order by topic, partition))[:100] as affected
  from lacking
  group by cluster, broker_id
),

worst as (
  select
    cluster,
    broker_id,
    string_agg(topic, ', ' order by place) filter (where place <= 3) as worst_topics
  from (
    select
      cluster,
      broker_id,
      topic,
      row_number() over (partition by cluster, broker_id order by count(*) desc, topic asc) as place
    from lacking
    group by cluster, broker_id, topic
  ) as by_topic
  group by cluster, broker_id
),

told as (
  select distinct cluster from metrics.partition_hourly where hour = :hour and isr is not null
),

broker as (
  select
    b.*,
    coalesce(b.broker_id::text, b.endpoint) as name
  from metrics.broker_hourly as b
  where b.hour = :hour
),

-- Of a cluster: how many brokers lack replicas, and how many processes began lately.
rolled as (
  select
    m.cluster,
    count(*) as missing_brokers,
    (
      select count(*)
      from broker as b
      where b.cluster = m.cluster
      and b.process_started_at > max(m.observed_at) - make_interval(mins => cast(:roll_minutes as integer))
    ) as restarted_peers
  from missing as m
  group by m.cluster
),

judged as (
  select
    coalesce(b.cluster, m.cluster) as cluster,
    coalesce(b.name, m.broker_id) as broker_id,
    b.endpoint,
    b.instance_id,
    b.samples,
    b.process_started_at,
    b.under_replicated_partitions,
    b.under_replicated_partitions_max,
    b.under_min_isr_partitions,
    b.leaders,
    b.endpoint is not null and b.samples is null as is_silent,
    m.missing_partitions,
    m.missing_topics,
    m.below_min_partitions,
    m.affected,
    w.worst_topics,
    r.restarted_peers,
    t.cluster is not null as is_told,
    b.samples is null and r.missing_brokers = 1 and r.restarted_peers > 0 as is_rolling,
    b.process_started_at > m.observed_at - make_interval(mins => cast(:start_minutes as integer)) as is_starting
  from broker as b
  full join missing as m on b.cluster = m.cluster and b.name = m.broker_id
  left join worst as w on m.cluster = w.cluster and m.broker_id = w.broker_id
  left join rolled as r on m.cluster = r.cluster
  left join told as t on coalesce(b.cluster, m.cluster) = t.cluster
)

select
  case
    when missing_partitions > :allowed and is_starting then 'starting'
    when missing_partitions > :allowed and below_min_partitions > 0 then 'read_only'
    when missing_partitions > :allowed and is_rolling then 'rolling'
    when missing_partitions > :allowed then 'missing'
    when missing_partitions > 0 then 'tolerated'
    when is_told then 'whole'
    when samples is null then 'silent'
    when under_replicated_partitions is null then 'untold'
    when under_replicated_partitions > :allowed and under_min_isr_partitions > 0 then 'followers_read_only'
    when under_replicated_partitions > :allowed then 'followers_missing'
    when under_replicated_partitions > 0 then 'tolerated'
    else 'whole'
  end as reason,
  cluster,
  broker_id,
  endpoint,
  instance_id,
  missing_partitions,
  missing_topics,
  worst_topics,
  case when is_told then below_min_partitions else under_min_isr_partitions end as under_min_isr_partitions,
  under_replicated_partitions,
  under_replicated_partitions_max,
  leaders,
  samples,
  is_silent,
  restarted_peers,
  process_started_at,
  affected
from judged

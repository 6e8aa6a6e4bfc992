/*
title: Under-replicated partitions
resource_kind: broker
owner_role: platform
maturity: stable
reads: [metrics.broker_hourly, metrics.partition_hourly, inventory.topic_hourly]
params:
  allowed: {default: 0, unit: partitions, why: "every under-replicated partition is one failure closer to data loss"}
  start_minutes: {default: 15, unit: min, why: "a restarted broker may need so long to catch up"}
  roll_minutes: {default: 60, unit: min, why: "a rolling restart reaches the next broker within an hour"}
  reassignment_days:
    default: 7
    unit: d
    why: "a reassignment of many partitions may take so long; topics had their target number of replicas before"
key_metrics: [missing_partitions, under_replicated_partitions, under_min_isr_partitions, missing_topics, leaders]
verdicts:
  missing:
    status: firing
    severity: warning
    message: "Broker {{ broker_id }} is out of the ISR of {{ missing_partitions | counted('partition') }}, {{ allowed }} allowed."
    details: &details
      - "Most affected topics: {{ worst_topics }}."
      - "{% if is_unresponsive %}The broker does not respond over JMX.{% endif %}"
    impact: "One more broker failure can make these partitions read-only or lose data."
    actions: &actions
      - "If broker {{ broker_id }} is down, start it."
      - "If it runs, check why it cannot keep up: its volume, its network, and its CPU."
    commands: &commands
      - "kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --describe --under-replicated-partitions"
  read_only:
    status: firing
    severity: critical
    message: "Broker {{ broker_id }} is out of the ISR of {{ missing_partitions | counted('partition') }}; {{ under_min_isr_partitions }} {{ under_min_isr_partitions | plural('is', 'are') }} below min.insync.replicas."
    details: *details
    impact: &read_only "Partitions below min.insync.replicas reject produce requests with acks=all."
    actions: *actions
    commands: &below ["kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --describe --under-min-isr-partitions"]
  followers_missing:
    status: firing
    severity: warning
    message: "{{ under_replicated_partitions | counted('partition') }} led by broker {{ broker_id }} {{ under_replicated_partitions | plural('is', 'are') }} under-replicated, {{ allowed }} allowed."
    details: &followers
      - "The cluster did not report which replicas are out of sync."
    impact: "One more broker failure can make these partitions read-only or lose data."
    actions: &start_followers
      - "Start the broker that is down."
      - "If all brokers run, find the follower that cannot keep up: its volume, its network, and its CPU."
    commands: *commands
  followers_read_only:
    status: firing
    severity: critical
    message: "Broker {{ broker_id }} leads {{ under_replicated_partitions | counted('under-replicated partition') }}; {{ under_min_isr_partitions }} {{ under_min_isr_partitions | plural('is', 'are') }} below min.insync.replicas."
    details: *followers
    impact: *read_only
    actions: *start_followers
    commands: *below
  tolerated:
    status: ok
    message: "Under-replicated partitions of broker {{ broker_id }}: {{ missing_partitions or under_replicated_partitions }}, {{ allowed }} allowed."
  starting:
    status: ok
    message: "Broker {{ broker_id }} started at {{ process_started_at }} and is catching up: {{ missing_partitions | counted('partition') }} to go."
  rolling_restart:
    status: ok
    message: "Broker {{ broker_id }} is out of the ISR of {{ missing_partitions | counted('partition') }} in a rolling restart: {{ restarted_peers | counted('peer') }} restarted before."
  in_sync: {status: ok, message: "No partition of broker {{ broker_id }} is under-replicated."}
  no_response:
    status: unknown
    message: "Not evaluated: broker {{ broker_id }} did not respond over JMX, and the cluster did not report in-sync replicas."
  not_reported: {status: unknown, message: "Not evaluated: broker {{ broker_id }} did not report UnderReplicatedPartitions."}
caused_by:
  broker_down_loses_replicas: [missing, read_only]
  outage_leaves_replicas_behind: [missing, read_only]
  disk_slows_broker: [missing, read_only]
  cpu_slows_broker: [missing, read_only]
  broker_slows_flushes: [missing, read_only]
  leader_loses_followers: [missing, read_only]
  reassignment_slows_brokers: [missing, read_only]
  broker_loses_replicas: [followers_missing, followers_read_only]
open_after_hours: 1
clear_after_hours: 2
description: |
  Each broker counts the partitions with an out-of-sync replica on itself, so one broker that is down is one finding
  and not one for each of its peers. Where the cluster does not return in-sync replicas, a broker counts the
  under-replicated partitions that it leads. Critical: partitions below min.insync.replicas. Not counted: a partition with more
  replicas than its topic had within reassignment_days that has not had as many in sync yet (a reassignment adds
  replicas), and a partition without any in-sync replica (see partitions_leaderless). A single broker that does not respond
  while peers were restarted within roll_minutes is part of a rolling restart.
runbook: |
  ## Meaning
  Replicas on this broker, or of partitions led by it, are not in sync with their leader.
  ## Impact
  Fewer copies exist than configured. Below min.insync.replicas, producers with acks=all are rejected.
  ## Diagnosis
  1. Check whether the broker is down.
  2. If it runs: check the queue length and burst balance of its volume, its network, and its CPU.
  3. Replicas that a running reassignment adds are not counted.
  ## Mitigation
  1. Start the broker.
  2. Restore its I/O, network, or CPU, or move leaders away until it has caught up.
limitations: |
  In-sync replicas are read once an hour. A partition counts unless the JMX metrics of its leader show no under-replicated
  partition in one sample of the run. Without JMX, a rolling restart at that moment is reported, and so is its first
  broker. What happens between two runs is not detected.
*/
with incomplete as materialized (
  select distinct cluster, topic
  from metrics.partition_hourly
  where hour = :hour and missing_brokers is not null
),

-- Restricted to these topics: a week of all topics is a large scan.
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

out_of_sync as (
  select
    p.cluster,
    m.broker_id,
    p.topic,
    p.partition,
    p.isr is null as is_isr_unknown,
    p.isr < (t.configs -> 'min.insync.replicas' ->> 'value')::integer as is_below_min,
    t.observed_at
  from metrics.partition_hourly as p
  inner join inventory.topic_hourly as t using (hour, cluster, topic)
  inner join before as b using (cluster, topic)
  cross join lateral jsonb_array_elements_text(p.missing_brokers) as m (broker_id)
  left join metrics.broker_hourly as l on p.hour = l.hour and p.cluster = l.cluster and p.leader = l.broker_id
  where
    p.hour = :hour
    and p.isr is distinct from 0
    and (
      p.replicas is null
      or p.replicas <= b.replication_factor
      or p.replicas <= (
        select max(e.isr)
        from metrics.partition_hourly as e
        where e.cluster = p.cluster and e.topic = p.topic and e.partition = p.partition
        and e.hour > p.hour - make_interval(days => cast(:reassignment_days as integer)) and e.hour < p.hour
      )
    )
    and l.under_replicated_partitions is distinct from 0  -- its leader reported full replication in one sample
),

missing as (
  select
    cluster,
    broker_id,
    count(*) as missing_partitions,
    count(distinct topic) as missing_topics,
    count(*) filter (where is_below_min) as below_min_partitions,
    bool_or(is_isr_unknown) as is_isr_unknown,
    max(observed_at) as observed_at,
    (array_agg(jsonb_build_object('topic', topic, 'partition', partition) order by topic, partition))[:100] as affected
  from out_of_sync
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
    from out_of_sync
    group by cluster, broker_id, topic
  ) as by_topic
  group by cluster, broker_id
),

reported as (
  select distinct cluster from metrics.partition_hourly where hour = :hour and isr is not null
),

broker as (
  select
    b.*,
    coalesce(b.broker_id::text, b.endpoint) as name
  from metrics.broker_hourly as b
  where b.hour = :hour
),

-- For each cluster: brokers with missing replicas, and processes that started recently.
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

evaluated as (
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
    b.endpoint is not null and b.samples is null as is_unresponsive,
    m.missing_partitions,
    m.missing_topics,
    m.below_min_partitions,
    m.affected,
    w.worst_topics,
    r.restarted_peers,
    t.cluster is not null as has_isr,
    b.samples is null and r.missing_brokers = 1 and r.restarted_peers > 0 and not m.is_isr_unknown as is_rolling,
    b.process_started_at > m.observed_at - make_interval(mins => cast(:start_minutes as integer)) as is_starting
  from broker as b
  full join missing as m on b.cluster = m.cluster and b.name = m.broker_id
  left join worst as w on m.cluster = w.cluster and m.broker_id = w.broker_id
  left join rolled as r on m.cluster = r.cluster
  left join reported as t on coalesce(b.cluster, m.cluster) = t.cluster
)

select
  case
    when missing_partitions > :allowed and is_starting then 'starting'
    when missing_partitions > :allowed and below_min_partitions > 0 then 'read_only'
    when missing_partitions > :allowed and is_rolling then 'rolling_restart'
    when missing_partitions > :allowed then 'missing'
    when missing_partitions > 0 then 'tolerated'
    when has_isr then 'in_sync'
    when samples is null then 'no_response'
    when under_replicated_partitions is null then 'not_reported'
    when under_replicated_partitions > :allowed and under_min_isr_partitions > 0 then 'followers_read_only'
    when under_replicated_partitions > :allowed then 'followers_missing'
    when under_replicated_partitions > 0 then 'tolerated'
    else 'in_sync'
  end as reason,
  cluster,
  broker_id,
  endpoint,
  instance_id,
  missing_partitions,
  missing_topics,
  worst_topics,
  case when has_isr then below_min_partitions else under_min_isr_partitions end as under_min_isr_partitions,
  under_replicated_partitions,
  under_replicated_partitions_max,
  leaders,
  samples,
  is_unresponsive,
  restarted_peers,
  process_started_at,
  affected
from evaluated

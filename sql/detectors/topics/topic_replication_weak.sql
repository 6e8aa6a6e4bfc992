/*
title: Unsafe replication settings
resource_kind: cluster
owner_role: platform
maturity: stable
reads: [inventory.topic_hourly, inventory.broker_hourly, metrics.partition_hourly, metrics.replica_sample]
params:
  replicas: {default: 3, unit: replicas, why: "tolerates one broker in maintenance and one failure at the same time"}
  may_be_single: {default: "", unit: regex, why: "topics that may lose their records; empty: none"}
  acks_all_topics:
    default: ""
    unit: regex
    why: "topics with producers that use acks=all and need min.insync.replicas above 1; empty: none"
  parked_brokers:
    default: ""
    unit: regex
    why: "cluster/broker id of brokers that store unused topics; topics only on these are left out; empty: none"
  most_shown: {default: 20, unit: topics, why: "longer lists in a ticket are not useful"}
key_metrics: [single_topics, exposed_bytes, high_min_isr_topics, low_min_isr_topics, one_rack_topics]
verdicts:
  single_replica:
    status: firing
    severity: warning
    message: >-
      {{ single_topics | counted("topic") }} with traffic in cluster {{ cluster }}
      {{ single_topics | plural("has", "have") }} replication factor 1.
    details:
      - "{% if exposed_bytes %}{{ exposed_bytes }} of records exist on one broker only.{% endif %}"
      - "{% if added_bytes %}Replicas for all of them need {{ added_bytes }} more disk space.{% endif %}"
    impact: "If one disk or broker is lost, the records on it are lost, and the topics stay offline until it is back."
    actions:
      - "Add replicas, starting with the largest topic."
      - "Prevent it: raise default.replication.factor, and replication.factor of Kafka Streams applications."
      - "Add topics that may lose their records to `may_be_single`."
    commands: &plan ["streamwarden plan replicas {{ cluster }}"]
  min_isr_too_high:
    status: firing
    severity: warning
    message: >-
      {{ high_min_isr_topics | counted("topic") }} with traffic in cluster {{ cluster }}
      {{ high_min_isr_topics | plural("has", "have") }} min.insync.replicas equal to the replication factor.
    impact: "The restart of any broker stops producers with acks=all (NotEnoughReplicas)."
    actions: &min_isr
      - >-
        {% if first_min_isr_topic %}Set min.insync.replicas to the replication factor minus one.
        Repeat the command for each topic in the finding.{% endif %}
      - "{% if two_replica_topics %}Add a third replica to topics with two replicas first.{% endif %}"
      - "Prevent it: create topics with replication factor 3 and min.insync.replicas 2."
    commands: &commands
      - "{% if two_replica_topics %}streamwarden plan replicas {{ cluster }}{% endif %}"
      - >-
        {% if first_min_isr_topic %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter
        --entity-type topics --entity-name {{ first_min_isr_topic }}
        --add-config min.insync.replicas={{ first_advised_min_isr }}{% endif %}
  min_isr_too_low:
    status: firing
    severity: warning
    message: >-
      {{ low_min_isr_topics | counted("topic") }} with acks=all producers in cluster {{ cluster }}
      {{ low_min_isr_topics | plural("has", "have") }} min.insync.replicas 1.
    impact: "Brokers acknowledge records that exist on one broker only; if it fails, acknowledged records are lost."
    actions: *min_isr
    commands: *commands
  one_rack:
    status: firing
    severity: info
    message: >-
      {{ one_rack_partitions | counted("partition") }} of {{ one_rack_topics | counted("topic") }} with traffic
      {{ one_rack_partitions | plural("has", "have") }} all replicas in one rack;
      cluster {{ cluster }} has {{ racks | counted("rack") }}.
    impact: "If this rack (availability zone) fails, these partitions are offline."
    actions:
      - "Move one replica of each partition to another rack."
      - "Prevent it: set broker.rack on all brokers; Kafka spreads replicas of new topics over racks only then."
    commands: *plan
  safe:
    status: ok
    message: >-
      All {{ evaluated_topics }} topics with traffic in cluster {{ cluster }} tolerate the loss and the restart of a
      broker{% if racks > 1 %}, and the loss of one of {{ racks }} racks{% endif %}.
  one_broker: {status: ok, message: "Cluster {{ cluster }} has one broker; replication is not possible."}
  idle: {status: ok, message: "No topic of cluster {{ cluster }} has traffic ({{ topics | counted('topic') }})."}
  not_reported:
    status: unknown
    message: >-
      Not evaluated: replicas, racks, min.insync.replicas, or traffic of {{ unknown_topics }} of {{ topics }} topics were
      not reported by cluster {{ cluster }}.
open_after_hours: 2
clear_after_hours: 2
description: |
  Evaluates plain topics and changelogs that received records within a day, on clusters with more than one broker. Fires
  for, in this order: replication factor 1; min.insync.replicas equal to the replication factor; min.insync.replicas 1 on
  topics of `acks_all_topics`; partitions with all replicas in one rack (broker.rack; an availability zone on AWS) of
  several.
runbook: |
  ## Meaning
  The replication settings of topics with traffic do not tolerate the loss or the restart of one broker.
  ## Impact
  Lost records, offline partitions, or producers that stop during each rolling restart.
  ## Diagnosis
  1. Replication factor 1: find out who created the topic. Kafka Streams before 3.0 used replication.factor 1 by default.
  2. All replicas in one rack: brokers got their broker.rack after the topic was created, or a reassignment ignored it.
  ## Mitigation
  1. Replication factor 1: add replicas with a throttled reassignment; the metrics contain the disk space it needs.
  2. min.insync.replicas: set it to the replication factor minus one. Two replicas need a third one first.
  3. One rack: move a replica of each partition to another rack.
  4. Add topics that may lose their records to `may_be_single`, with the reason in the config.
limitations: |
  Kafka does not expose the acks setting of producers; `acks_all_topics` names their topics. Brokers without broker.rack
  have no known rack. A topic that receives records less than once a day counts as idle. Sizes are log sizes as reported
  by the brokers.
*/
with topic as (
  select
    cluster,
    topic,
    partitions,
    replication_factor,
    application_id,
    one_rack_partitions,
    cast(configs -> 'min.insync.replicas' ->> 'value' as integer) as min_isr
  from inventory.topic_hourly
  where hour = :hour and kind in ('plain', 'changelog')
),

-- Offsets only increase: the same sum a day ago means a day without records.
log_end as (
  select
    cluster,
    topic,
    sum(log_end_offset) filter (where hour = :hour) as now_end,
    sum(log_end_offset_first) filter (where hour = :hour) as first_end,
    sum(log_end_offset) filter (where hour < :hour) as day_ago_end,
    bool_or(log_end_offset is null) as is_unknown
  from metrics.partition_hourly
  where hour in (:hour, :hour - interval '24 hours')
  group by cluster, topic
),

log_size as (
  select
    cluster,
    topic,
    sum(size_bytes) as log_bytes,
    bool_and(:parked_brokers <> '' and cluster || '/' || broker_id ~ :parked_brokers) as is_parked
  from metrics.replica_sample
  where hour = :hour and not is_future
  group by cluster, topic
),

broker as (
  select
    cluster,
    count(broker_id) as brokers,
    bool_or(broker_id is null) as has_leaderless
  from (
    select
      cluster,
      broker_id
    from metrics.replica_sample
    where hour = :hour
    union
    select
      cluster,
      leader
    from metrics.partition_hourly
    where hour = :hour
  ) as seen
  group by cluster
),

rack as (
  select
    cluster,
    count(distinct rack) as racks
  from inventory.broker_hourly
  where hour = :hour
  group by cluster
),

traffic as (
  select
    t.*,
    coalesce(r.racks, 0) as racks,
    b.brokers,
    b.has_leaderless,
    h.log_bytes,
    case
      when l.now_end > coalesce(l.day_ago_end, l.first_end) then true
      when l.now_end is null or l.is_unknown or coalesce(l.day_ago_end, l.first_end) is null then null
      else false
    end as has_traffic
  from topic as t
  left join broker as b using (cluster)
  left join log_end as l using (cluster, topic)
  left join log_size as h using (cluster, topic)
  left join rack as r using (cluster)
  where not coalesce(h.is_parked, false)
),

evaluated as (
  select
    *,
    case
      when not has_traffic then 'idle'
      when has_traffic is null or replication_factor is null then 'not_reported'
      when :may_be_single <> '' and topic ~ :may_be_single then 'may be single'
      when replication_factor = 1 then 'one replica'
      when min_isr is null then 'not_reported'
      when min_isr >= replication_factor then 'high min.insync.replicas'
      when min_isr = 1 and :acks_all_topics <> '' and topic ~ :acks_all_topics then 'low min.insync.replicas'
      when racks > 1 and one_rack_partitions is null then 'not_reported'
      when racks > 1 and one_rack_partitions > 0 then 'one rack'
      else 'safe'
    end as weakness,
    log_bytes * (least(:replicas, brokers) - 1) as added_bytes
  from traffic
),

ranked as (
  select
    *,
    row_number() over (partition by cluster, weakness order by log_bytes desc nulls last, topic asc) as place,
    -- The most serious first; null where replication is safe, idle, or unknown.
    array_position(
      array['one replica', 'high min.insync.replicas', 'low min.insync.replicas', 'one rack'], weakness
    ) as weakness_rank
  from evaluated
),

weak as (
  select
    p.cluster,
    json_agg(
      json_build_object(
        'topic', p.topic, 'weakness', p.weakness, 'owner', resource.owner, 'replicas', p.replication_factor,
        'bytes', p.log_bytes, 'one_rack_partitions', case p.weakness when 'one rack' then p.one_rack_partitions end
      ) order by p.weakness_rank, p.place
    ) as topics,
    (array_agg(p.topic order by p.weakness_rank, p.place) filter (where fix.is_min_isr))[1] as first_min_isr_topic,
    (array_agg(p.replication_factor - 1 order by p.weakness_rank, p.place) filter (where fix.is_min_isr))[1]
      as first_advised_min_isr,
    count(*) filter (where fix.is_third_replica) as two_replica_topics,
    jsonb_agg(public.resource_key('topic', p.cluster, p.topic) order by p.weakness_rank, p.place) as affected
  from ranked as p
  left join public.resources(:hour) as resource
    on resource.kind = 'topic' and resource.key = public.resource_key('topic', p.cluster, p.topic)
  cross join lateral (
    select
      p.weakness like '% min.insync.replicas' and p.replication_factor > 2 as is_min_isr,
      p.weakness like '% min.insync.replicas' and p.replication_factor <= 2 as is_third_replica
  ) as fix
  where p.weakness_rank is not null and p.place <= :most_shown
  group by p.cluster
),

summary as (
  select
    cluster,
    brokers,
    has_leaderless,
    racks,
    count(*) as topics,
    count(*) filter (where weakness not in ('idle', 'not_reported')) as evaluated_topics,
    count(*) filter (where weakness = 'one replica') as single_topics,
    count(*) filter (where weakness = 'high min.insync.replicas') as high_min_isr_topics,
    count(*) filter (where weakness = 'low min.insync.replicas') as low_min_isr_topics,
    count(*) filter (where weakness = 'one rack') as one_rack_topics,
    sum(one_rack_partitions) filter (where weakness = 'one rack') as one_rack_partitions,
    count(*) filter (where weakness = 'not_reported') as unknown_topics,
    sum(log_bytes) filter (where weakness = 'one replica') as exposed_bytes,
    sum(added_bytes) filter (where weakness = 'one replica') as added_bytes
  from evaluated
  group by cluster, brokers, has_leaderless, racks
)

select
  case
    when brokers = 1 and not has_leaderless then 'one_broker'
    when single_topics > 0 then 'single_replica'
    when high_min_isr_topics > 0 then 'min_isr_too_high'
    when low_min_isr_topics > 0 then 'min_isr_too_low'
    when one_rack_topics > 0 then 'one_rack'
    when unknown_topics > 0 then 'not_reported'
    when evaluated_topics = 0 then 'idle'
    else 'safe'
  end as reason,
  cluster,
  single_topics,
  exposed_bytes,
  added_bytes,
  high_min_isr_topics,
  low_min_isr_topics,
  one_rack_topics,
  one_rack_partitions,
  racks,
  unknown_topics,
  evaluated_topics,
  s.topics,
  brokers,
  w.topics as weak_topics,
  w.first_min_isr_topic,
  w.first_advised_min_isr,
  w.two_replica_topics,
  w.affected
from summary as s
left join weak as w using (cluster)

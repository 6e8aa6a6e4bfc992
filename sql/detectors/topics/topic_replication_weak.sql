/*
title: Topics are replicated too weakly
resource_kind: cluster
owner_role: platform
maturity: stable
reads: [inventory.topic_hourly, inventory.broker_hourly, metrics.partition_hourly, metrics.replica_sample]
params:
  replicas: {default: 3, unit: replicas, why: "one may be down for maintenance and one fail"}
  may_be_single: {default: "", unit: regex, why: "topics whose records may be lost; empty: none"}
  acks_all_topics: {default: "", unit: regex, why: "topics whose producers wait for all replicas, so that min.insync.replicas 1 deceives them; empty: none"}
  parked_brokers: {default: "", unit: regex, why: "cluster/broker id of brokers that keep what nobody uses; topics that lie only there are left alone; empty: none"}
  most_shown: {default: 20, unit: topics, why: "more in a ticket are read by nobody"}
key_metrics: [single_topics, exposed_bytes, stopping_topics, deceiving_topics, one_rack_topics]
verdicts:
  single:
    status: firing
    severity: warning
    message: "{{ single_topics | counted('topic') }} with traffic {{ 'has' if single_topics == 1 else 'have' }} one replica only: the loss of a disk loses {% if exposed_bytes %}{{ exposed_bytes }}{% else %}their records{% endif %}."
    actions:
      - "Add replicas, the topic with most bytes first{% if added_bytes %}; it takes {{ added_bytes }} more of disk in all{% endif %}. Then raise default.replication.factor, and replication.factor of Streams applications."
    commands: &plan ["streamwarden plan replicas {{ cluster }}"]
  stops_writes:
    status: firing
    severity: warning
    message: "{{ stopping_topics | counted('topic') }} with traffic {{ 'needs' if stopping_topics == 1 else 'need' }} all replicas in sync: the restart of one broker stops the writes of producers with acks=all."
    actions:
      - &one_less "Set min.insync.replicas to one less than the replicas; where there are two, add a third first.{% if stopping_topics > most_shown or deceiving_topics > most_shown %} The commands are for the {{ most_shown }} largest topics.{% endif %}"
    commands:
      - &fewer "{% for one in weak_topics %}{% if one.weakness in ('stops writes', 'deceives') and one.replicas.value > 2 %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --entity-type topics --entity-name {{ one.topic }} --add-config min.insync.replicas={{ one.replicas.value - 1 }}; {% endif %}{% endfor %}"
      - "{% for one in weak_topics if one.weakness == 'stops writes' and one.replicas.value <= 2 %}{% if loop.first %}streamwarden plan replicas {{ cluster }}{% endif %}{% endfor %}"
  deceives:
    status: firing
    severity: warning
    message: "{{ deceiving_topics | counted('topic') }} with traffic {{ 'has' if deceiving_topics == 1 else 'have' }} min.insync.replicas 1 though the producers wait for all replicas: one copy is enough to acknowledge."
    actions:
      - *one_less
    commands:
      - *fewer
      - "{% for one in weak_topics if one.weakness == 'deceives' and one.replicas.value <= 2 %}{% if loop.first %}streamwarden plan replicas {{ cluster }}{% endif %}{% endfor %}"
  one_rack:
    status: firing
    severity: info
    message: "{{ one_rack_topics | counted('topic') }} with traffic {{ 'has' if one_rack_topics == 1 else 'have' }} partitions whose replicas all lie in one rack, {{ one_rack_partitions | counted('partition') }} in all: its loss loses them, though the brokers are in {{ racks | counted('rack') }}."
    actions:
      - "Move a replica of each to another rack. Kafka places those of new topics apart only where all brokers have a broker.rack."
    commands: *plan
  sound: {status: ok, message: "All {{ judged_topics }} topics with traffic bear the loss and the restart of a broker{% if racks > 1 %}, and the loss of one of {{ racks }} racks{% endif %}."}
  one_broker: {status: ok, message: "The cluster has one broker: there is nothing to replicate to."}
  idle: {status: ok, message: "None of its {{ topics }} topics has traffic."}
  unknown:
    status: unknown
    message: "Of {{ unknown_topics }} of {{ topics }} topics the replicas or their racks, min.insync.replicas or the traffic of the last day aren't known."
open_after_hours: 2
clear_after_hours: 2
description: |
  Plain topics and changelogs that got records within a day, on clusters of more than one broker: with one replica; with
  min.insync.replicas equal to the replicas; with min.insync.replicas 1 where producers are said to wait for all; with
  partitions whose replicas all lie in one rack (broker.rack; on AWS a zone) though the brokers are in several.
runbook: |
  1. One replica: who made the topic? Often an application with replication.factor 1 left at its default (Kafka Streams
     before 3.0), or a test. Add replicas by a throttled reassignment; the figures say how much disk it takes.
  2. All replicas needed: lower min.insync.replicas by one, or add a replica. Two replicas with min.insync.replicas 2
     want a third.
  3. One rack: brokers got their broker.rack after the topic was made, or a reassignment didn't heed it.
  4. What may be lost on purpose belongs under `may_be_single`, with a reason beside it in the config.
limitations: |
  acks of producers aren't told: `acks_all_topics` says whose they are. Racks of brokers that have no broker.rack.
  A topic that gets records less than once a day counts as idle. Sizes are those that brokers tell of their logs.
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

-- Offsets only rise: a sum that is the same a day ago is a day without records.
log_end as (
  select
    cluster,
    topic,
    sum(log_end_offset) filter (where hour = :hour) as now_end,
    sum(log_end_offset_first) filter (where hour = :hour) as first_end,
    sum(log_end_offset) filter (where hour < :hour) as day_ago_end,
    bool_or(log_end_offset is null) filter (where hour = :hour) as is_unknown
  from metrics.partition_hourly
  where hour in (:hour, :hour - interval '24 hours')
  group by cluster, topic
),

held as (
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

weighed as (
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
  left join held as h using (cluster, topic)
  left join rack as r using (cluster)
  where not coalesce(h.is_parked, false)
),

judged as (
  select
    *,
    case
      when not has_traffic then 'idle'
      when has_traffic is null or replication_factor is null then 'unknown'
      when :may_be_single <> '' and topic ~ :may_be_single then 'may be'
      when replication_factor = 1 then 'one replica'
      when min_isr is null then 'unknown'
      when min_isr >= replication_factor then 'stops writes'
      when min_isr = 1 and :acks_all_topics <> '' and topic ~ :acks_all_topics then 'deceives'
      when racks > 1 and one_rack_partitions is null then 'unknown'
      when racks > 1 and one_rack_partitions > 0 then 'one rack'
      else 'sound'
    end as weakness,
    log_bytes * (least(:replicas, brokers) - 1) as added_bytes
  from weighed
),

placed as (
  select
    *,
    row_number() over (partition by cluster, weakness order by log_bytes desc nulls last, topic asc) as place
  from judged
),

weak as (
  select
    p.cluster,
    json_agg(
      json_build_object(
        'topic', p.topic, 'weakness', p.weakness, 'owner', resource.owner, 'replicas', p.replication_factor,
        'bytes', p.log_bytes, 'one_rack_partitions', case p.weakness when 'one rack' then p.one_rack_partitions end
      ) order by p.weakness, p.place
    ) as topics,
    jsonb_agg(public.resource_key('topic', p.cluster, p.topic) order by p.weakness, p.place) as affected
  from placed as p
  left join public.resources(:hour) as resource
    on resource.kind = 'topic' and resource.key = public.resource_key('topic', p.cluster, p.topic)
  where p.weakness in ('one replica', 'stops writes', 'deceives', 'one rack') and p.place <= :most_shown
  group by p.cluster
),

summary as (
  select
    cluster,
    brokers,
    has_leaderless,
    racks,
    count(*) as topics,
    count(*) filter (where weakness not in ('idle', 'unknown')) as judged_topics,
    count(*) filter (where weakness = 'one replica') as single_topics,
    count(*) filter (where weakness = 'stops writes') as stopping_topics,
    count(*) filter (where weakness = 'deceives') as deceiving_topics,
    count(*) filter (where weakness = 'one rack') as one_rack_topics,
    sum(one_rack_partitions) filter (where weakness = 'one rack') as one_rack_partitions,
    count(*) filter (where weakness = 'unknown') as unknown_topics,
    sum(log_bytes) filter (where weakness = 'one replica') as exposed_bytes,
    sum(added_bytes) filter (where weakness = 'one replica') as added_bytes
  from judged
  group by cluster, brokers, has_leaderless, racks
)

select
  case
    when brokers = 1 and not has_leaderless then 'one_broker'
    when single_topics > 0 then 'single'
    when stopping_topics > 0 then 'stops_writes'
    when deceiving_topics > 0 then 'deceives'
    when one_rack_topics > 0 then 'one_rack'
    when unknown_topics > 0 then 'unknown'
    when judged_topics = 0 then 'idle'
    else 'sound'
  end as reason,
  cluster,
  single_topics,
  exposed_bytes,
  added_bytes,
  stopping_topics,
  deceiving_topics,
  one_rack_topics,
  one_rack_partitions,
  racks,
  unknown_topics,
  judged_topics,
  s.topics,
  brokers,
  w.topics as weak_topics,
  w.affected
from summary as s
left join weak as w using (cluster)

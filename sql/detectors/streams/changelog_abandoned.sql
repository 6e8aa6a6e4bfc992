/*
title: Internal topics of an application that is gone
resource_kind: application
owner_role: application
maturity: stable
reads: [inventory.topic_hourly, metrics.partition_hourly, metrics.topic_hourly, metrics.consumer_group_hourly, metrics.consumer_partition_hourly, metrics.jvm_app_hourly, metrics.replica_sample]
params:
  quiet_days: {default: 7, unit: d, why: "no application that runs is silent for a week, but for batches"}
  gap_factor: {default: 2, unit: ratio, why: "of the longest pause that it ever made: batches have a rhythm"}
  month_days: {default: 35, unit: d, why: "an application that wasn't watched for a month before may be a monthly job"}
  history_days: {default: 92, unit: d, why: "as far back as pauses are looked for"}
  large_bytes: {default: 53687091200, unit: bytes, why: "50 GiB, all replicas, are worth a ticket"}
  large_partitions: {default: 1000, unit: partitions, why: "they cost brokers files and memory"}
  parked_brokers: {default: "", unit: regex, why: "cluster/broker id of brokers that keep what nobody uses; topics that lie only there are left alone; empty: none"}
  most_shown: {default: 20, unit: topics, why: "more in a ticket are read by nobody"}
key_metrics: [rest_days, log_bytes, partition_count, topic_count, usd_per_month]
verdicts:
  large:
    status: firing
    severity: warning
    message: &reason "Nobody has used the {{ topic_count | counted('internal topic') }} of {{ application_id }} for {{ rest_days }}: {{ partition_count | counted('partition') }}, {{ log_bytes }}{% if usd_per_month %}, {{ usd_per_month }}{% endif %}.{% if heir %} {{ heir }} seems to have replaced it: it has the same stores, reads the same topics and began when this one ended.{% endif %}"
    actions:
      - &cure "Ask its owner. If it is gone, let the records expire, wait until the files are gone, then delete the topics."
    commands: &commands
      - "{% for one in internal_topics %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --entity-type topics --entity-name {{ one.topic }} --add-config cleanup.policy=delete,retention.ms=60000; {% endfor %}"
      - "{% for one in internal_topics %}kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --delete --topic {{ one.topic }}; {% endfor %}"
  abandoned: {status: firing, severity: info, message: *reason, actions: [*cure], commands: *commands}
  parked: {status: ok, message: "Nobody has used its internal topics for {{ rest_days }}; they lie on parked brokers only, where they disturb nobody."}
  in_use: {status: ok, message: "Its internal topics are in use: {{ sign_of_use }}."}
  resting: {status: ok, message: "Its internal topics have rested for {{ rest_days }}; {{ needed_rest_days }} are needed to call them abandoned."}
  unknown: {status: unknown, message: "Whether its internal topics are in use isn't known: {{ gap }}."}
  young: {status: unknown, message: "Its internal topics are known of only {{ known_days }}, and nothing was written meanwhile."}
causes:
  overpartitioning_adds_partitions: [large, abandoned]
open_after_hours: 24
clear_after_hours: 1
description: |
  For quiet_days, gap_factor times its longest pause, or month_days where it wasn't watched for a month before its last
  record, whichever is longest: no new offset, no bytes sent, no group of its name with members or commits, no process
  with its id, and no commit or member on its topics now. Any sign of use vetoes. A Samza job's coordinator and checkpoint
  topics are its internal topics, and so are the changelogs that the config's jobs.changelog_patterns name: while it runs
  its checkpoints are new offsets.
runbook: |
  1. Is it a job that comes seldom, or stopped for maintenance? Then leave it.
  2. Was it replaced by an application with another id? Then what it holds is of no use to that one.
  3. Where topics can't be deleted: streamwarden plan removal APPLICATION --park puts them with one replica on a parked broker.
limitations: |
  Jobs that come more rarely than twice in the history. A GlobalKTable that nobody restarts fetches nothing: it is seen by
  its bytes when it starts. Samza jobs that write no checkpoints to Kafka tell nothing of their use.
  Readers of whom JMX tells no bytes veto for ever. What replaced it is told only if stores and sources are the very same, and
  the hours around its end were gathered; a Samza job's heir isn't.
*/
with rest as materialized (
  select
    r.*,
    r.name as application_id,
    r.known_days is not null and r.rest_days = 0 as gets_records,
    greatest(
      :quiet_days, :gap_factor * r.longest_pause_days, case when r.observed_days < :month_days then :month_days end
    ) as needed_days
  from public.idle_topics(:hour, :quiet_days, :history_days, true) as r
),

topic as materialized (
  select
    t.*,
    (ceil(r.needed_days) * 24)::integer as hours,
    r.rest_days >= r.needed_days as is_resting
  from inventory.topic_hourly as t
  inner join rest as r using (cluster, application_id)
  where t.hour = :hour and t.kind <> 'plain'
),

sent as (
  select
    t.cluster,
    t.application_id,
    sum(s.bytes_out) as bytes_out,
    bool_or(s.known_hours * 2 < t.hours) as is_unknown
  from topic as t
  cross join lateral public.topic_sent(t.cluster, t.topic, :hour, t.hours) as s
  where t.is_resting
  group by t.cluster, t.application_id
),

read_now as (
  select distinct
    t.cluster,
    t.application_id
  from topic as t
  inner join metrics.consumer_partition_hourly as p using (hour, cluster, topic)
  where t.is_resting and (p.commits > 0 or p.client_id is not null)
),

-- Of those that got records all is said: a month of the others' groups and processes takes longest to read.
grouped as (
  select
    r.cluster,
    r.application_id,
    bool_or(g.members > 0 or g.commits > 0) as is_used,
    count(*) filter (where g.members is null or g.commits is null) * 2 > count(*) as is_unknown
  from rest as r
  inner join metrics.consumer_group_hourly as g
    on r.cluster = g.cluster and r.application_id = g.group_id
    and g.hour > :hour - r.needed_days * interval '1 day'
  where g.hour between :hour - make_interval(days => :history_days) and :hour
  and r.gets_records is not true
  group by r.cluster, r.application_id
),

process as (
  select distinct
    r.cluster,
    r.application_id
  from rest as r
  inner join metrics.jvm_app_hourly as a
    on r.cluster = a.cluster and r.application_id = a.application_id
    and a.hour > :hour - r.needed_days * interval '1 day'
  where a.hour between :hour - make_interval(days => :history_days) and :hour
  and r.gets_records is not true
),

held as (
  select
    cluster,
    topic,
    sum(size_bytes) as log_bytes,
    bool_and(:parked_brokers <> '' and cluster || '/' || broker_id ~ :parked_brokers) as is_parked
  from metrics.replica_sample
  where hour = :hour
  group by cluster, topic
),

sized as (
  select
    t.cluster,
    t.application_id,
    count(*) as topic_count,
    sum(t.partitions) as partition_count,
    sum(t.partitions * t.replication_factor) as replica_count,
    sum(t.log_bytes) as log_bytes,
    bool_and(coalesce(t.is_parked, false)) as is_parked,
    bool_or(t.kind = 'coordinator') and not bool_or(t.kind = 'checkpoint') as has_no_checkpoints,
    json_agg(json_build_object('topic', t.topic, 'partitions', t.partitions, 'bytes', t.log_bytes) order by t.place)
      filter (where t.place <= :most_shown) as internal_topics,
    jsonb_agg(public.resource_key('topic', t.cluster, t.topic) order by t.place) filter (where t.place <= :most_shown)
      as affected
  from (
    select
      topic.*,
      held.log_bytes,
      held.is_parked,
      row_number() over (
        partition by topic.cluster, topic.application_id order by held.log_bytes desc nulls last, topic.topic asc
      ) as place
    from topic
    left join held using (cluster, topic)
  ) as t
  group by t.cluster, t.application_id
),

judged as (
  select
    r.*,
    s.topic_count,
    s.partition_count,
    s.replica_count,
    s.log_bytes,
    s.is_parked,
    s.log_bytes / power(1024, 3) * price.usd_per_gib as usd_per_month,
    s.internal_topics,
    s.affected,
    case
      when r.gets_records then 'records'
      when sent.bytes_out > 0 then 'bytes sent'
      when g.is_used then 'its group'
      when p.application_id is not null then 'a process'
      when n.application_id is not null then 'another group'
    end as sign_of_use,
    case
      when r.known_days is null or (r.rest_days < r.needed_days and r.unknown_days > 0) then 'offsets'
      when sent.is_unknown then 'bytes sent'
      when g.is_unknown then 'its group'
      when s.has_no_checkpoints then 'its checkpoints'
    end as gap
  from rest as r
  inner join sized as s using (cluster, application_id)
  left join inventory.broker_storage_price(:hour) as price using (cluster)
  left join sent using (cluster, application_id)
  left join grouped as g using (cluster, application_id)
  left join process as p using (cluster, application_id)
  left join read_now as n using (cluster, application_id)
),

decided as (
  select
    *,
    case
      when sign_of_use is not null then 'in_use'
      when gap = 'offsets' then 'unknown'
      when rest_days < needed_days and observed_days = 0 then 'young'
      when rest_days < needed_days then 'resting'
      when gap is not null then 'unknown'
      when is_parked then 'parked'
      when log_bytes >= :large_bytes or partition_count >= :large_partitions then 'large'
      else 'abandoned'
    end as reason
  from judged
),

heir as materialized (
  select h.*
  from (
    select
      array_agg(cluster) as clusters,
      array_agg(application_id) as applications,
      array_agg(rest_days) as rest_days
    from decided
    where reason in ('large', 'abandoned')
  ) as gone
  cross join lateral
  public.successor_groups(gone.clusters, gone.applications, gone.rest_days, :hour) as h
)

select
  d.reason,
  cluster,
  application_id,
  d.rest_days,
  d.needed_days as needed_rest_days,
  d.known_days,
  d.longest_pause_days,
  d.sign_of_use,
  d.gap,
  h.heir,
  d.topic_count,
  d.partition_count,
  d.replica_count * 3 as open_files,
  d.log_bytes,
  d.usd_per_month,
  d.internal_topics,
  d.affected
from decided as d
left join heir as h using (cluster, application_id)

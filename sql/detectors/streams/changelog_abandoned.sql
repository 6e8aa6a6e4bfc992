/*
title: Abandoned internal topics
resource_kind: application
owner_role: application
maturity: stable
reads:
  - inventory.topic_hourly
  - metrics.partition_hourly
  - metrics.topic_hourly
  - metrics.consumer_group_hourly
  - metrics.consumer_partition_hourly
  - metrics.jvm_app_hourly
  - metrics.replica_sample
params:
  quiet_days: {default: 7, unit: d, why: "an application that runs, other than a batch job, is not idle for a week"}
  gap_factor: {default: 2, unit: ratio, why: "of the longest pause in its history: batch jobs run periodically"}
  month_days: {default: 35, unit: d, why: "an application with under a month of history may be a monthly job"}
  history_days: {default: 92, unit: d, why: "how far back pauses are measured"}
  large_bytes: {default: 53687091200, unit: bytes, why: "50 GiB over all replicas are worth a warning"}
  large_partitions: {default: 1000, unit: partitions, why: "each partition costs brokers file descriptors and memory"}
  parked_brokers:
    default: ""
    unit: regex
    why: "matches cluster/broker id of brokers that keep unused topics; topics only there are ignored; empty: none"
  most_shown: {default: 20, unit: topics, why: "a longer list in a ticket is not read"}
key_metrics: [unused_days, log_bytes, partition_count, topic_count, usd_per_month]
verdicts:
  large:
    status: firing
    severity: warning
    message: &message >
      Application {{ name }} has {{ topic_count | counted("abandoned internal topic") }}
      ({{ partition_count | counted("partition") }}, {{ log_bytes }}): unused for {{ unused_days }} (limit
      {{ required_unused_days }}).
    details: &details
      - "Largest topics: {{ internal_topics | listed('topic', 3) }}."
      - "{% if usd_per_month %}Their storage costs {{ usd_per_month }}.{% endif %}"
      - >
        {% if successor %}{{ successor }} probably replaced this application: it has the same stores and source topics, and
        started when this one ended.{% endif %}
    impact: "The topics occupy disk space, file descriptors, and memory of the brokers, and slow down their recovery."
    actions: &actions
      - "Ask the owner of the application whether it is decommissioned."
      - "Let the records expire first (cleanup.policy=delete, short retention.ms), then delete the topics."
      - "Prevent it: delete internal topics with kafka-streams-application-reset when an application is decommissioned."
    commands: &commands
      - "kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --group {{ application_id }}"
      - "streamwarden plan removal {{ application_id }} --cluster {{ cluster }}"
  abandoned:
    status: firing
    severity: info
    message: *message
    details: *details
    impact: "The topics occupy disk space, file descriptors, and memory of the brokers."
    actions: *actions
    commands: *commands
  parked:
    status: ok
    message: "Internal topics of {{ name }} have been unused for {{ unused_days }} and are on parked brokers only."
  in_use: {status: ok, message: "Internal topics of {{ name }} are in use: {{ usage_evidence }}."}
  recently_used:
    status: ok
    message: "Internal topics of {{ name }} have been unused for {{ unused_days }} (limit {{ required_unused_days }})."
  usage_not_reported: {status: unknown, message: "Not evaluated: {{ gap }} not reported for the internal topics of {{ name }}."}
  short_history:
    status: unknown
    message: >
      Not evaluated: internal topics of {{ name }} are known for only {{ known_days }}, without a record since.
causes:
  overpartitioning_adds_partitions: [large, abandoned]
open_after_hours: 24
clear_after_hours: 1
description: |
  Internal topics are abandoned if they have been unused for `quiet_days`, `gap_factor` times their longest pause, or
  `month_days` where less than a month of history precedes their last record, whichever is longest. Unused means: no new
  offset, no bytes out, no members or commits of the group with the application's name, no process with its application id,
  and no other member or commit on its topics now. Any evidence of use clears the finding. Internal topics of a Samza job
  are its coordinator and checkpoint topics, and the changelogs that `jobs.changelog_patterns` names: checkpoints that a
  running job writes are new offsets.
runbook: |
  ## Meaning
  Changelog and repartition topics exist, but their Kafka Streams application or Samza job no longer runs.
  ## Impact
  Disk space, file descriptors, and memory of the brokers; longer recovery after a broker failure.
  ## Diagnosis
  1. Is it a rare batch job, or stopped for maintenance? Then acknowledge the finding.
  2. Was it replaced by an application with another id? The new one does not use the old state.
  ## Mitigation
  1. `streamwarden plan removal APPLICATION` prints the commands that expire and delete the topics.
  2. Where topics cannot be deleted, add `--park`: one replica on a parked broker.
limitations: |
  Jobs that run less often than twice in the history count as abandoned. A GlobalKTable that is never restarted fetches nothing;
  its use is visible only in the bytes out when it starts. Samza jobs that write no checkpoints to Kafka report no use.
  Consumers without byte rates in JMX block the finding for as long as they exist. A successor is named only if stores and
  source topics are identical and the hours around the end have data; successors of Samza jobs are not detected.
*/
with idle as materialized (
  select
    r.*,
    r.name as application_id,
    r.known_days is not null and r.rest_days = 0 as gets_records,
    greatest(
      :quiet_days, :gap_factor * r.longest_pause_days, case when r.observed_days < :month_days then :month_days end
    ) as required_days
  from public.idle_topics(:hour, :quiet_days, :history_days, true) as r
),

topic as materialized (
  select
    t.*,
    (ceil(r.required_days) * 24)::integer as hours,
    r.rest_days >= r.required_days as is_idle
  from inventory.topic_hourly as t
  inner join idle as r using (cluster, application_id)
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
  where t.is_idle
  group by t.cluster, t.application_id
),

current_reader as (
  select distinct
    t.cluster,
    t.application_id
  from topic as t
  inner join metrics.consumer_partition_hourly as p using (hour, cluster, topic)
  where t.is_idle and (p.commits > 0 or p.client_id is not null)
),

-- Only for applications without new records: a month of groups and processes takes longest to read.
group_use as (
  select
    r.cluster,
    r.application_id,
    bool_or(g.members > 0 or g.commits > 0) as is_used,
    count(*) filter (where g.members is null or g.commits is null) * 2 > count(*) as is_unknown
  from idle as r
  inner join metrics.consumer_group_hourly as g
    on r.cluster = g.cluster and r.application_id = g.group_id
    and g.hour > :hour - r.required_days * interval '1 day'
  where g.hour between :hour - make_interval(days => :history_days) and :hour
  and r.gets_records is not true
  group by r.cluster, r.application_id
),

process as (
  select distinct
    r.cluster,
    r.application_id
  from idle as r
  inner join metrics.jvm_app_hourly as a
    on r.cluster = a.cluster and r.application_id = a.application_id
    and a.hour > :hour - r.required_days * interval '1 day'
  where a.hour between :hour - make_interval(days => :history_days) and :hour
  and r.gets_records is not true
),

topic_size as (
  select
    cluster,
    topic,
    sum(size_bytes) as log_bytes,
    bool_and(:parked_brokers <> '' and cluster || '/' || broker_id ~ :parked_brokers) as is_parked
  from metrics.replica_sample
  where hour = :hour
  group by cluster, topic
),

application_size as (
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
      topic_size.log_bytes,
      topic_size.is_parked,
      row_number() over (
        partition by topic.cluster, topic.application_id order by topic_size.log_bytes desc nulls last, topic.topic asc
      ) as place
    from topic
    left join topic_size using (cluster, topic)
  ) as t
  group by t.cluster, t.application_id
),

evidence as (
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
      when r.gets_records then 'new records'
      when sent.bytes_out > 0 then 'bytes out'
      when g.is_used then 'consumer group'
      when p.application_id is not null then 'running process'
      when n.application_id is not null then 'another consumer group'
    end as usage_evidence,
    case
      when r.known_days is null or (r.rest_days < r.required_days and r.unknown_days > 0) then 'offsets'
      when sent.is_unknown then 'bytes out'
      when g.is_unknown then 'group use'
      when s.has_no_checkpoints then 'checkpoints'
    end as gap
  from idle as r
  inner join application_size as s using (cluster, application_id)
  left join inventory.broker_storage_price(:hour) as price using (cluster)
  left join sent using (cluster, application_id)
  left join group_use as g using (cluster, application_id)
  left join process as p using (cluster, application_id)
  left join current_reader as n using (cluster, application_id)
),

verdict as (
  select
    *,
    case
      when usage_evidence is not null then 'in_use'
      when gap = 'offsets' then 'usage_not_reported'
      when rest_days < required_days and observed_days = 0 then 'short_history'
      when rest_days < required_days then 'recently_used'
      when gap is not null then 'usage_not_reported'
      when is_parked then 'parked'
      when log_bytes >= :large_bytes or partition_count >= :large_partitions then 'large'
      else 'abandoned'
    end as reason
  from evidence
),

successor as materialized (
  select h.*
  from (
    select
      array_agg(cluster) as clusters,
      array_agg(application_id) as applications,
      array_agg(rest_days) as rest_days
    from verdict
    where reason in ('large', 'abandoned')
  ) as abandoned
  cross join lateral
  public.successor_groups(abandoned.clusters, abandoned.applications, abandoned.rest_days, :hour) as h
)

select
  d.reason,
  cluster,
  application_id,
  d.rest_days as unused_days,
  d.required_days as required_unused_days,
  d.known_days,
  d.longest_pause_days,
  d.usage_evidence,
  d.gap,
  h.successor,
  d.topic_count,
  d.partition_count,
  d.replica_count * 3 as open_files,
  d.log_bytes,
  d.usd_per_month,
  d.internal_topics,
  d.affected
from verdict as d
left join successor as h using (cluster, application_id)

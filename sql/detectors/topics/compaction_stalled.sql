/*
title: Log cleaner stalled
resource_kind: broker
owner_role: platform
maturity: stable
reads:
  - metrics.broker_hourly
  - metrics.broker_topic_sample
  - inventory.topic_hourly
  - metrics.partition_hourly
  - metrics.replica_sample
params:
  still_hours:
    default: 24
    unit: h
    why: "an idle cleaner checks for work every 15 s; only a log of many hours' work occupies all threads longer"
  overdue_hours:
    default: 24
    unit: h
    why: "Kafka checks retention every 5 minutes (log.retention.check.interval.ms); a day also covers clock skew"
key_metrics: [dead_cleaner_threads, uncleanable_partitions, cleaner_last_run_seconds, compacted_bytes, overdue_bytes]
verdicts:
  threads_dead:
    status: firing
    severity: critical
    message: >-
      {{ dead_cleaner_threads | counted("log cleaner thread") }} of broker {{ broker_id }}
      {{ dead_cleaner_threads | plural("is", "are") }} dead; compaction does not resume before the broker restarts.
    details: &details
      - >-
        {% if compacted_bytes %}Broker {{ broker_id }} stores {{ compacted_bytes }} in
        {{ compacted_topics | counted("compacted topic") }}.{% endif %}
      - "{% if largest_topics %}Largest compacted topics: {{ largest_topics }}.{% endif %}"
    impact: &impact >-
      Compacted topics grow without limit: the disk fills up, and restores of state stores and consumer offsets slow down.
    actions:
      - &error "Find the partition and the error in log-cleaner.log; the thread dies again if the cause remains."
      - &restart "Restart broker {{ broker_id }}: nothing else restarts a cleaner thread."
      - &alert "Alert on kafka.log:type=LogCleaner,name=DeadThreadCount above 0."
    commands: &commands
      - "grep -h -e 'uncleanable' -e 'Error due to' /var/log/kafka/log-cleaner.log* | tail -20"
      - >-
        kafka-log-dirs.sh --bootstrap-server {{ bootstrap_servers }} --describe --broker-list {{ broker_id }}
        {% if largest_topics %}--topic-list {{ largest_topics | replace(", ", ",") }}{% endif %}
  not_run:
    status: firing
    severity: warning
    message: >-
      The log cleaner of broker {{ broker_id }} last ran {{ cleaner_last_run_seconds }} ago (limit {{ still_hours }});
      {{ compacted_topics | counted("compacted topic") }} {{ compacted_topics | plural("grows", "grow") }} meanwhile.
    details: *details
    impact: *impact
    actions:
      - *error
      - *restart
      - *alert
    commands: *commands
  uncleanable:
    status: firing
    severity: warning
    message: >-
      Broker {{ broker_id }} marked {{ uncleanable_partitions | counted("partition") }} as uncleanable; the log cleaner
      skips {{ uncleanable_partitions | plural("it", "them") }} until the broker restarts.
    details:
      - >-
        {% if uncleanable_bytes %}The uncleanable
        {{ uncleanable_partitions | plural("partition takes", "partitions take") }} {{ uncleanable_bytes }}.{% endif %}
    impact: >-
      The uncleanable partitions grow without limit: the disk fills up, and restores read ever more records.
    actions:
      - "Find the partition and the error in log-cleaner.log."
      - >-
        If only this replica has a corrupt segment: stop the broker and move the partition's directory away.
        After the start, the broker fetches the replica from its leader.
      - "If all replicas have it, remove the segment; its records are lost."
    commands: *commands
  not_deleted:
    status: firing
    severity: warning
    message: >-
      Broker {{ broker_id }} keeps records past retention.ms in at least
      {{ overdue_partitions | counted("partition") }} of {{ overdue_topics | counted("topic") }} that it leads.
    details:
      - >-
        Topic {{ first_topic }} has retention.ms {{ first_kept_seconds }}, but still holds records from before
        {{ first_overdue_from }}.
      - "{% if overdue_bytes %}Records past their retention take {{ overdue_bytes }}.{% endif %}"
    impact: "The disk of broker {{ broker_id }} fills up with records that retention should have deleted."
    actions:
      - "Find the log on which kafka-log-retention fails in server.log; the logs after it wait as well."
      - "Restart broker {{ broker_id }}."
      - >-
        If the same log fails again, move its directory away while the broker is stopped.
        The broker fetches it from the leader after the start.
    commands:
      - "grep -h -A3 -e 'kafka-log-retention' -e 'Error while deleting segments' /var/log/kafka/server.log* | tail -20"
      - "kafka-get-offsets.sh --bootstrap-server {{ bootstrap_servers }} --topic {{ first_topic }} --time earliest"
  cleaner_running:
    status: ok
    message: >-
      The log cleaner of broker {{ broker_id }} last ran {{ cleaner_last_run_seconds }} ago;
      no partition is uncleanable.
  nothing_compacted: {status: ok, message: "Broker {{ broker_id }} has no compacted topic."}
  no_response: {status: unknown, message: "Not evaluated: broker {{ broker_id }} did not respond over JMX."}
  not_reported:
    status: unknown
    message: >-
      Not evaluated: broker {{ broker_id }} does not expose the log cleaner's metrics (older than Kafka 2.5, or without a
      log cleaner).
causes:
  cleaner_fills_disk: [threads_dead, not_run, uncleanable, not_deleted]
open_after_hours: 1
clear_after_hours: 2
description: |
  Fires on a broker's own metrics: dead cleaner threads, uncleanable partitions, or no run of the cleaner for still_hours
  while the broker has compacted topics. One sample is enough, because none of these recovers without a restart.
  Also fires when a partition that the broker leads begins with records past their retention. These records were in the
  log retention.ms + segment.ms + overdue_hours ago, and no record in the log had a later timestamp then.
runbook: |
  ## Meaning
  The log cleaner compacts topics; the retention task deletes old segments. At least one of them does not work on this
  broker.
  ## Impact
  Logs grow until the disk is full. State stores restore more slowly by all records that were not compacted.
  ## Diagnosis
  1. Find the partition and the error in log-cleaner.log (compaction) or server.log (retention).
  2. Typical errors: corrupt records, a record without a key, too little memory for the offset map.
  3. Compare with the other replicas: is the segment corrupt on this broker only?
  ## Mitigation
  1. Corrupt on this broker only: let the broker fetch the replica from its leader.
  2. Corrupt on all replicas: remove the segment; its records are lost.
  3. Restart the broker, and check that the cleaner runs again.
limitations: |
  JMX does not expose which partitions are uncleanable. A cleaner that runs but is too slow is not detected.
  Retention is evaluated only for partitions known for longer than retention.ms + segment.ms. Not evaluated are topics
  that are also compacted (the cleaner merges segments), tiered topics, and topics with retention by size only.
  Topics that were recreated, truncated, or kept longer in that time, or with records dated in the future, are left out.
  At most 100 partitions per broker are evaluated.
*/
with compacted as (
  select
    s.cluster,
    s.endpoint,
    count(*) as compacted_topics,
    sum(s.log_bytes) as compacted_bytes,
    (array_agg(s.topic order by s.log_bytes desc nulls last, s.topic asc))[:3] as largest_topics
  from metrics.broker_topic_sample as s
  inner join inventory.topic_hourly as t on s.hour = t.hour and s.cluster = t.cluster and s.topic = t.topic
  where s.hour = :hour and t.cleanup_policy like '%compact%'
  group by s.cluster, s.endpoint
),

listed_cluster as (
  select distinct cluster
  from inventory.topic_hourly
  where hour = :hour
),

overdue_partition as materialized (
  select
    o.*,
    b.size_bytes * o.overdue_ratio as overdue_bytes
  from public.partitions_overdue(:hour, cast(:overdue_hours as integer)) as o
  left join lateral (
    select sum((r.partition_bytes ->> o.partition::text)::bigint) as size_bytes
    from metrics.replica_sample as r
    where r.hour = :hour and r.cluster = o.cluster and r.topic = o.topic
    and r.broker_id = o.broker_id and not r.is_future
  ) as b on true
),

overdue as (
  select
    cluster,
    broker_id,
    count(*) as overdue_partitions,
    count(distinct topic) as overdue_topics,
    sum(overdue_bytes) as overdue_bytes,
    (array_agg(topic order by overdue_bytes desc nulls last, topic asc))[1] as first_topic,
    (array_agg(kept_seconds order by overdue_bytes desc nulls last, topic asc))[1] as first_kept_seconds,
    (array_agg(overdue_from order by overdue_bytes desc nulls last, topic asc))[1] as first_overdue_from
  from overdue_partition
  group by cluster, broker_id
),

broker as (
  select *
  from metrics.broker_hourly
  where hour = :hour
)

select
  case
    when b.dead_cleaner_threads > 0 then 'threads_dead'
    when b.uncleanable_partitions > 0 then 'uncleanable'
    when o.broker_id is not null then 'not_deleted'
    when b.samples is null then 'no_response'
    when num_nulls(b.cleaner_last_run_seconds, b.uncleanable_partitions, b.dead_cleaner_threads) > 0 then 'not_reported'
    when l.cluster is not null and c.cluster is null then 'nothing_compacted'
    when b.cleaner_last_run_seconds >= :still_hours * 3600 and c.cluster is null then 'not_reported'
    when b.cleaner_last_run_seconds >= :still_hours * 3600 then 'not_run'
    else 'cleaner_running'
  end as reason,
  coalesce(b.cluster, o.cluster) as cluster,
  coalesce(b.broker_id::text, o.broker_id::text, b.endpoint) as broker_id,
  b.dead_cleaner_threads,
  b.uncleanable_partitions,
  b.uncleanable_bytes,
  b.cleaner_last_run_seconds,
  c.compacted_bytes,
  c.compacted_topics,
  array_to_string(c.largest_topics, ', ') as largest_topics,
  o.overdue_partitions,
  o.overdue_topics,
  o.overdue_bytes,
  o.first_topic,
  o.first_kept_seconds,
  o.first_overdue_from,
  b.endpoint,
  b.samples
from broker as b
full join overdue as o on b.cluster = o.cluster and b.broker_id = o.broker_id
left join compacted as c on b.cluster = c.cluster and b.endpoint = c.endpoint
left join listed_cluster as l on b.cluster = l.cluster

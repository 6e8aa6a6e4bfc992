/*
title: Logs aren't compacted or deleted any more
resource_kind: broker
owner_role: platform
maturity: stable
reads: [metrics.broker_hourly, metrics.broker_topic_sample, inventory.topic_hourly, metrics.partition_hourly, metrics.replica_sample]
params:
  still_hours: {default: 24, unit: h, why: "the cleaner looks for work every 15 s; only a log of many hours' work keeps all of its threads longer"}
  overdue_hours: {default: 24, unit: h, why: "Kafka looks every 5 minutes for what to delete (log.retention.check.interval.ms); a day also covers clocks that differ"}
key_metrics: [dead_cleaner_threads, uncleanable_partitions, cleaner_last_run_seconds, compacted_bytes, overdue_bytes]
verdicts:
  threads_dead:
    status: firing
    severity: critical
    message: "{{ dead_cleaner_threads | counted('thread') }} of its log cleaner {{ 'is' if dead_cleaner_threads == 1 else 'are' }} dead: what is compacted grows from now on{% if compacted_bytes %}, {{ compacted_bytes }} in {{ compacted_topics | counted('topic') }} here{% endif %}{% if largest_topics %}, most of it in {{ largest_topics }}{% endif %}."
    actions:
      - &cure "Restart the broker: nothing else starts a cleaner thread again. Before that look into log-cleaner.log for the partition and the error that ended it, or it ends again."
    commands: &commands
      - "grep -h -e 'uncleanable' -e 'Error due to' /var/log/kafka/log-cleaner.log* | tail -20"
      - "kafka-log-dirs.sh --bootstrap-server {{ bootstrap_servers }} --describe --broker-list {{ broker_id }}{% if largest_topics %} --topic-list {{ largest_topics | replace(', ', ',') }}{% endif %}"
  not_run:
    status: firing
    severity: warning
    message: "Its log cleaner hasn't looked for work for {{ cleaner_last_run_seconds }}: {{ compacted_topics | counted('compacted topic') }}{% if compacted_bytes %} with {{ compacted_bytes }}{% endif %} {{ 'grows' if compacted_topics == 1 else 'grow' }} meanwhile{% if largest_topics %}, most of it {{ largest_topics }}{% endif %}."
    actions:
      - *cure
    commands: *commands
  uncleanable:
    status: firing
    severity: warning
    message: "{{ uncleanable_partitions | counted('partition') }} can't be compacted{% if uncleanable_bytes %}, {{ uncleanable_bytes }} of log{% endif %}: the cleaner failed on {{ 'it' if uncleanable_partitions == 1 else 'them' }}, and leaves {{ 'it' if uncleanable_partitions == 1 else 'them' }} out until the broker is restarted."
    actions:
      - "log-cleaner.log names the partition and the error. A corrupt segment on this replica alone: stop the broker, move the partition's directory away, and start it: the replica is fetched anew from its leader."
    commands: *commands
  not_deleted:
    status: firing
    severity: warning
    message: "It doesn't delete what retention.ms no longer keeps: at least {{ overdue_partitions | counted('partition') }} that it leads, of {{ overdue_topics | counted('topic') }}, {{ 'begins' if overdue_partitions == 1 else 'begin' }} with records that should be gone{% if overdue_bytes %}, {{ overdue_bytes }} of them{% endif %}. {{ first_topic }} keeps {{ first_kept_seconds }}, and has some from before {{ first_overdue_from }}."
    actions:
      - "Look into server.log for the log on which kafka-log-retention fails: those behind it wait as well. Restart the broker; if the same log fails again, move its directory away while the broker is stopped, and let it be fetched anew from its leader."
    commands:
      - "grep -h -A3 -e 'kafka-log-retention' -e 'Error while deleting segments' /var/log/kafka/server.log* | tail -20"
      - "kafka-get-offsets.sh --bootstrap-server {{ bootstrap_servers }} --topic {{ first_topic }} --time earliest"
  cleans: {status: ok, message: "Its log cleaner looked for work {{ cleaner_last_run_seconds }} ago, and left nothing out."}
  nothing_compacted: {status: ok, message: "No topic is compacted here."}
  silent: {status: unknown, message: "The broker did not answer over JMX."}
  untold: {status: unknown, message: "The broker does not tell of its log cleaner: it is older than Kafka 2.5, or has none."}
causes:
  cleaner_fills_disk: [threads_dead, not_run, uncleanable, not_deleted]
open_after_hours: 1
clear_after_hours: 2
description: |
  A broker's own gauges: cleaner threads that are dead, partitions that it gave up, or no look for work for still_hours,
  where it has topics that are compacted. One sample of the run is enough: none of them heals without a restart.
  Or, whatever its gauges say, a partition that it leads begins with records which retention.ms should have taken
  overdue_hours ago: retention.ms + segment.ms + overdue_hours ago they were in the log, and none in it was dated later.
runbook: |
  1. log-cleaner.log: which partition, which error? Corrupt records, a key without a value where one must be, no memory for the offset map.
  2. Is the other replica whole? Then let this one be fetched anew; else take the segment out and lose what is in it.
  3. Restart the broker. Restores of state stores take longer by all that wasn't compacted: look at the changelogs named.
limitations: |
  JMX doesn't tell which partitions are given up. A cleaner that runs and doesn't keep up isn't told. Retention is judged
  only of partitions that have been known for longer than they keep records and a segment. It isn't judged of topics that
  are compacted too (the cleaner joins old segments with new ones), that are in tiered storage or bound by size alone, nor
  of those that were made anew, cut or kept longer within that time, or have records that were dated ahead: these are kept
  for so much longer, but not by a broker's fault. Of one broker a hundred partitions are looked at.
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

read as (
  select distinct cluster
  from inventory.topic_hourly
  where hour = :hour
),

late as materialized (
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
  from late
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
    when b.samples is null then 'silent'
    when num_nulls(b.cleaner_last_run_seconds, b.uncleanable_partitions) > 0 then 'untold'
    when r.cluster is not null and c.cluster is null then 'nothing_compacted'
    when b.cleaner_last_run_seconds >= :still_hours * 3600 and c.cluster is null then 'untold'
    when b.cleaner_last_run_seconds >= :still_hours * 3600 then 'not_run'
    else 'cleans'
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
left join read as r on b.cluster = r.cluster

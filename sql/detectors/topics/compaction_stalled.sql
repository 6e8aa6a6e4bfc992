/*
title: Logs aren't compacted any more
about: broker
owner: platform
maturity: stable
reads: [metrics.broker_hourly, metrics.broker_topic_sample, inventory.topic_hourly]
params:
  still_hours: {default: 24, unit: h, why: "the cleaner looks for work every 15 s; only a log of many hours' work keeps all of its threads longer"}
convinces: [dead_cleaner_threads, uncleanable_partitions, uncleanable_bytes, cleaner_last_run_seconds, compacted_bytes]
says:
  threads_dead:
    status: alarm
    severity: critical
    reason: "{{ dead_cleaner_threads | counted('thread') }} of its log cleaner {{ 'is' if dead_cleaner_threads == 1 else 'are' }} dead: what is compacted grows from now on{% if compacted_bytes %}, {{ compacted_bytes }} in {{ compacted_topics | counted('topic') }} here{% endif %}{% if largest_topics %}, most of it in {{ largest_topics }}{% endif %}."
    cure: &cure "Restart the broker: nothing else starts a cleaner thread again. Before that look into log-cleaner.log for the partition and the error that ended it, or it ends again."
    commands: &commands
      - "grep -h -e 'uncleanable' -e 'Error due to' /var/log/kafka/log-cleaner.log* | tail -20"
      - "kafka-log-dirs.sh --bootstrap-server {{ bootstrap_servers }} --describe --broker-list {{ broker_id }}{% if largest_topics %} --topic-list {{ largest_topics | replace(', ', ',') }}{% endif %}"
  not_run:
    status: alarm
    severity: warning
    reason: "Its log cleaner hasn't looked for work for {{ cleaner_last_run_seconds }}: {{ compacted_topics | counted('compacted topic') }}{% if compacted_bytes %} with {{ compacted_bytes }}{% endif %} {{ 'grows' if compacted_topics == 1 else 'grow' }} meanwhile{% if largest_topics %}, most of it {{ largest_topics }}{% endif %}."
    cure: *cure
    commands: *commands
  uncleanable:
    status: alarm
    severity: warning
    reason: "{{ uncleanable_partitions | counted('partition') }} can't be compacted{% if uncleanable_bytes %}, {{ uncleanable_bytes }} of log{% endif %}: the cleaner failed on {{ 'it' if uncleanable_partitions == 1 else 'them' }}, and leaves {{ 'it' if uncleanable_partitions == 1 else 'them' }} out until the broker is restarted."
    cure: "log-cleaner.log names the partition and the error. A corrupt segment on this replica alone: stop the broker, move the partition's directory away, and start it: the replica is fetched anew from its leader."
    commands: *commands
  cleans: {status: ok, reason: "Its log cleaner looked for work {{ cleaner_last_run_seconds }} ago, and left nothing out."}
  nothing_compacted: {status: ok, reason: "No topic is compacted here."}
  silent: {status: skip, reason: "The broker did not answer over JMX."}
  untold: {status: skip, reason: "The broker does not tell of its log cleaner: it is older than Kafka 2.5, or has none."}
causes:
  cleaner_fills_disk: [threads_dead, not_run, uncleanable]
open_after_hours: 1
clear_after_hours: 1
rule: |
  A broker's own gauges: cleaner threads that are dead, partitions that it gave up, or no look for work for still_hours,
  where it has topics that are compacted. One sample of the run is enough: none of them heals without a restart.
runbook: |
  1. log-cleaner.log: which partition, which error? Corrupt records, a key without a value where one must be, no memory for the offset map.
  2. Is the other replica whole? Then let this one be fetched anew; else take the segment out and lose what is in it.
  3. Restart the broker. Restores of state stores take longer by all that wasn't compacted: look at the changelogs named.
blind_spots: |
  JMX doesn't tell which partitions are given up. A cleaner that runs and doesn't keep up isn't told, nor is a topic whose
  settings keep it from being compacted (segment.ms, min.cleanable.dirty.ratio). Retention that doesn't run isn't seen.
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
  where s.hour = cast(:hour as timestamptz) and t.cleanup_policy like '%compact%'
  group by s.cluster, s.endpoint
),

read as (
  select distinct cluster
  from inventory.topic_hourly
  where hour = cast(:hour as timestamptz)
)

select
  case
    when b.samples is null then 'silent'
    when b.dead_cleaner_threads > 0 then 'threads_dead'
    when b.uncleanable_partitions > 0 then 'uncleanable'
    when num_nulls(b.cleaner_last_run_seconds, b.uncleanable_partitions) > 0 then 'untold'
    when r.cluster is not null and c.cluster is null then 'nothing_compacted'
    when b.cleaner_last_run_seconds >= :still_hours * 3600 and c.cluster is null then 'untold'
    when b.cleaner_last_run_seconds >= :still_hours * 3600 then 'not_run'
    else 'cleans'
  end as because,
  b.cluster,
  coalesce(b.broker_id::text, b.endpoint) as broker_id,
  b.dead_cleaner_threads,
  b.uncleanable_partitions,
  b.uncleanable_bytes,
  b.cleaner_last_run_seconds,
  c.compacted_bytes,
  c.compacted_topics,
  array_to_string(c.largest_topics, ', ') as largest_topics,
  b.endpoint,
  b.samples
from metrics.broker_hourly as b
left join compacted as c on b.cluster = c.cluster and b.endpoint = c.endpoint
left join read as r on b.cluster = r.cluster
where b.hour = cast(:hour as timestamptz)

/*
title: Producers are refused
resource_kind: cluster
owner_role: platform
maturity: stable
reads: [metrics.broker_hourly, metrics.topic_hourly, metrics.client_hourly, metrics.client_topic_hourly]
params:
  least_requests: {default: 100, unit: requests, why: "fewer in an hour are somebody who tries something"}
  least_ratio: {default: 0.001, unit: ratio, why: "one of a thousand requests; a client that is set up wrongly fails with all of its own"}
  ignored_errors: {default: "_AUTHORIZATION_FAILED$|^NOT_LEADER_OR_FOLLOWER$|^LEADER_NOT_AVAILABLE$|_LEADER_EPOCH$|^DUPLICATE_SEQUENCE_NUMBER$|^PRODUCER_FENCED$|^INVALID_PRODUCER_EPOCH$", unit: regex, why: "who may not write, leaders that move, records that are there already, producers that were replaced: nothing is lost"}
  passing_errors: {default: "^NOT_ENOUGH_REPLICAS|^REQUEST_TIMED_OUT$|^UNKNOWN_TOPIC|^KAFKA_STORAGE_ERROR$|^COORDINATOR_|^CONCURRENT_TRANSACTIONS$|^OUT_OF_ORDER_SEQUENCE_NUMBER$|^UNKNOWN_PRODUCER_ID$|^THROTTLING_", unit: regex, why: "producers try again for two minutes (delivery.timeout.ms): what is over by then lost nothing"}
  least_dropped: {default: 100, unit: records, why: "fewer of an application in an hour are somebody who tries something"}
  restart_hours: {default: 2, unit: h, why: "so long a rolling restart may take; producers try again meanwhile"}
key_metrics: [refused_requests, dropped_records, passing_requests, produce_requests, topics]
verdicts:
  refused:
    status: firing
    severity: warning
    message: &reason "{{ refused_requests }} of {{ produce_requests }} produce requests were answered with {{ errors | map(attribute='error') | join(', ') }}{% if topics %}, first of all of {{ topics | map(attribute='topic') | join(', ') }}{% endif %}: these records aren't written.{% if dropped_records %} {{ apps | map(attribute='app') | join(', ') }} gave up {{ dropped_records }}.{% endif %}"
    actions:
      - "{% if errors[0].error == 'MESSAGE_TOO_LARGE' %}Batches are larger than the topic's max.message.bytes: raise it, or lower max.request.size and batch.size of the producers.{% elif errors[0].error == 'INVALID_TIMESTAMP' %}Timestamps lie further from now than message.timestamp.before.max.ms and after.max.ms of the topic allow: mend the producer's clock, or the limits.{% elif errors[0].error == 'INVALID_RECORD' %}The broker finds the records invalid: a compacted topic takes none without a key; timestamps may be too far from now.{% else %}Look at the producers' logs for the error named: it isn't one that another try mends.{% endif %}"
    commands: &commands
      - "{% if topics %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --describe --all --entity-type topics --entity-name {{ topics[0].topic }}{% endif %}"
  not_taken:
    status: firing
    severity: warning
    message: "For two hours now: {{ passing_requests }} of {{ produce_requests }} produce requests were answered with {{ errors | map(attribute='error') | join(', ') }}{% if topics %}, first of all of {{ topics | map(attribute='topic') | join(', ') }}{% endif %}. Producers give up after two minutes."
    actions:
      - "{% if errors[0].error.value.startswith('NOT_ENOUGH_REPLICAS') %}Partitions have fewer replicas in sync than min.insync.replicas: start the brokers that lack.{% elif errors[0].error.value.startswith('UNKNOWN_TOPIC') %}Somebody writes to a topic that isn't there: make it, or stop the producer.{% else %}Look at the brokers' server.log for the error named.{% endif %}"
    commands: *commands
  failing:
    status: firing
    severity: warning
    message: "{{ failed_produces }} produces of partitions failed, of {{ produce_requests }} requests{% if topics %}, first of all of {{ topics | map(attribute='topic') | join(', ') }}{% endif %}; with which error the brokers don't tell."
    actions:
      - "Look at the brokers' server.log and at the producers' logs: failures that a change of leaders brings aren't counted here."
    commands: *commands
  dropped:
    status: firing
    severity: warning
    message: "{{ apps | map(attribute='app') | join(', ') }} gave up {{ dropped_records }}{% if topics %}, first of all of {{ topics | map(attribute='topic') | join(', ') }}{% endif %}: they aren't written.{% if unbuffered_records %} The producer's buffer had no room for {{ unbuffered_records }}.{% endif %}"
    actions:
      - "{% if unbuffered_records %}{{ apps[0].app }} makes more than it gets rid of: see how long its batches wait and what delays brokers' answers, before buffer.memory and max.block.ms are raised.{% else %}The log of {{ apps[0].app }} names the exception: delivery.timeout.ms that ran out (brokers that weren't reached), a record larger than max.request.size, a topic that isn't there or that it may not write.{% endif %}"
    commands: *commands
  passed: {status: ok, message: "{{ passing_requests }} of {{ produce_requests }} produce requests failed in a way that producers try again: a restart, or over within the hour."}
  taken: {status: ok, message: "Of {{ produce_requests }} produce requests fewer than {{ least_requests }}, or no more than {{ least_ratio }}, were refused."}
  untold: {status: unknown, message: "The brokers don't tell which produce requests fail."}
  silent: {status: unknown, message: "No broker answered over JMX, or none counted for long enough."}
open_after_hours: 1
clear_after_hours: 2
description: |
  Produce responses with an error, by all brokers of a cluster, without those that say nothing of lost records
  (ignored_errors). At least least_requests, and more than least_ratio of the requests. Those that producers try again
  (passing_errors) count only in the second hour in a row, and not where a broker was started within restart_hours. Where
  brokers don't tell their errors, FailedProduceRequestsPerSec counts: it leaves out what is usual when leaders move.
  Or what applications' producers count themselves: least_dropped records and more than least_ratio of an application's that
  they gave up (record-error-total) or had no room for (buffer-exhausted-total).
runbook: |
  1. Which error, of which topic? A response counts once for each error that is in it.
  2. Who writes there: the producers' own record-error-total says which of them loses records (metrics.client_hourly).
  3. NOT_ENOUGH_REPLICAS: partitions_under_replicated says which broker lacks.
limitations: |
  Brokers don't tell who was refused. A batch that is too large may be split by its producer and written after all. What a
  producer drops before it sends it (buffer full, delivery.timeout.ms) is seen only of JVMs whose metrics are read. With
  acks=0 nobody is answered. Topics are told only for failures that Kafka counts by topic. Records that an application
  sends again by itself, after its producer has given them up, are counted all the same.
*/
with broker as (
  select
    b.hour,
    b.cluster,
    b.endpoint,
    b.process_started_at,
    b.covered_seconds,
    b.produce_requests_per_second * b.covered_seconds as produce_requests,
    b.failed_produces,
    b.produce_errors
  from metrics.broker_hourly as b
  where b.hour in (:hour, :hour - interval '1 hour')
),

asked as (
  select
    hour,
    cluster,
    sum(produce_requests) as produce_requests,
    sum(failed_produces) as failed_produces,
    bool_or(produce_errors is not null) as tells_errors,
    bool_or(produce_requests > 0 and produce_errors is null and failed_produces is null) as is_untold,
    coalesce(
      bool_or(process_started_at > hour + interval '1 hour' - make_interval(hours => cast(:restart_hours as integer))),
      false
    ) as is_restarted
  from broker
  group by hour, cluster
),

error as (
  select
    b.hour,
    b.cluster,
    e.error,
    e.error ~ :passing_errors as is_passing,
    sum(e.responses::double precision) as responses
  from broker as b
  cross join lateral jsonb_each_text(b.produce_errors) as e (error, responses)
  where e.error !~ :ignored_errors
  group by b.hour, b.cluster, e.error
),

failed as (
  select
    hour,
    cluster,
    sum(responses) filter (where not is_passing) as refused_requests,
    sum(responses) filter (where is_passing) as passing_requests,
    jsonb_agg(jsonb_build_object('error', error, 'requests', responses) order by responses desc, error asc)
      filter (where not is_passing) as refused_errors,
    jsonb_agg(jsonb_build_object('error', error, 'requests', responses) order by responses desc, error asc)
      filter (where is_passing) as passing_errors
  from error
  group by hour, cluster
),

counted as (
  select
    a.*,
    f.refused_requests,
    f.passing_requests,
    f.refused_errors,
    f.passing_errors,
    greatest(:least_requests, :least_ratio * a.produce_requests) as least
  from asked as a
  left join failed as f on a.hour = f.hour and a.cluster = f.cluster
),

topic as (
  select
    cluster,
    (jsonb_agg(
      jsonb_build_object('topic', topic, 'failed_produces', failed_produces, 'rejected_bytes', bytes_rejected)
      order by place
    ) filter (where place <= 3)) as topics,
    sum(bytes_rejected) as rejected_bytes,
    (array_agg(public.resource_key('topic', cluster, topic) order by place))[:20] as affected
  from (
    select
      *,
      row_number() over (
        partition by cluster order by failed_produces desc nulls last, bytes_rejected desc nulls last, topic asc
      ) as place
    from metrics.topic_hourly
    where hour = :hour and (failed_produces > 0 or bytes_rejected > 0)
  ) as worst
  group by cluster
),

-- A record for which the buffer had no room is an error too, but of old producers.
dropping as materialized (
  select
    cluster,
    app,
    sum(greatest(record_errors, buffer_exhausted)) as dropped,
    sum(buffer_exhausted) as unbuffered
  from metrics.client_hourly
  where hour = :hour and kind = 'producer'
  group by cluster, app
  having sum(greatest(record_errors, buffer_exhausted)) >= :least_dropped
  and (sum(greatest(record_errors, buffer_exhausted)) > :least_ratio * sum(records)) is not false
),

dropped as (
  select
    cluster,
    sum(dropped) as records,
    nullif(sum(unbuffered), 0) as unbuffered,
    jsonb_agg(jsonb_build_object('app', app, 'dropped_records', dropped) order by dropped desc, app asc) as apps
  from dropping
  group by cluster
),

dropped_topic as (
  select
    cluster,
    jsonb_agg(jsonb_build_object('topic', topic, 'dropped_records', dropped) order by place) as topics,
    array_agg(public.resource_key('topic', cluster, topic) order by place) as affected
  from (
    select
      t.cluster,
      t.topic,
      sum(t.record_errors) as dropped,
      row_number() over (partition by t.cluster order by sum(t.record_errors) desc, t.topic asc) as place
    from dropping
    inner join metrics.client_topic_hourly as t using (cluster, app)
    where t.hour = :hour and t.kind = 'producer' and t.record_errors > 0
    group by t.cluster, t.topic
  ) as worst
  where place <= 3
  group by cluster
),

judged as (
  select
    n.*,
    coalesce(n.cluster, d.cluster) as of_cluster,
    d.records as dropped_records,
    d.unbuffered,
    d.apps,
    case
      when n.produce_requests is null and d.cluster is null then 'silent'
      when n.refused_requests >= n.least then 'refused'
      when n.passing_requests >= n.least and p.passing_requests >= p.least and not n.is_restarted then 'not_taken'
      when not n.tells_errors and n.failed_produces >= n.least then 'failing'
      when d.cluster is not null then 'dropped'
      when n.tells_errors and n.passing_requests >= n.least then 'passed'
      when n.is_untold then 'untold'
      else 'taken'
    end as reason
  from (select * from counted where hour = :hour) as n
  left join counted as p on p.hour = n.hour - interval '1 hour' and n.cluster = p.cluster
  full join dropped as d on n.cluster = d.cluster
)

select
  j.reason,
  j.of_cluster as cluster,
  coalesce(j.refused_requests, case when j.tells_errors then 0 end) as refused_requests,
  coalesce(j.passing_requests, case when j.tells_errors then 0 end) as passing_requests,
  j.produce_requests,
  j.failed_produces,
  t.rejected_bytes,
  j.dropped_records,
  j.unbuffered as unbuffered_records,
  case when j.reason = 'refused' then j.refused_errors else j.passing_errors end as errors,
  case when j.reason = 'dropped' then d.topics else t.topics end as topics,
  j.apps,
  to_jsonb(case when j.reason = 'dropped' then d.affected else t.affected end) as affected
from judged as j
left join topic as t on j.of_cluster = t.cluster
left join dropped_topic as d on j.of_cluster = d.cluster

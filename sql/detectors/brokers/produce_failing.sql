/*
title: Produce requests failing
resource_kind: cluster
owner_role: platform
maturity: stable
reads: [metrics.broker_hourly, metrics.topic_hourly, metrics.client_hourly, metrics.client_topic_hourly]
params:
  least_requests: {default: 100, unit: requests, why: "fewer in an hour are an experiment"}
  least_ratio: {default: 0.001, unit: ratio, why: "one of a thousand requests; a misconfigured client fails with all of its own"}
  ignored_errors:
    default: "_AUTHORIZATION_FAILED$|^NOT_LEADER_OR_FOLLOWER$|^LEADER_NOT_AVAILABLE$|_LEADER_EPOCH$|^DUPLICATE_SEQUENCE_NUMBER$|^PRODUCER_FENCED$|^INVALID_PRODUCER_EPOCH$"
    unit: regex
    why: "missing permissions, moving leaders, duplicates, and fenced producers: no record is lost"
  passing_errors:
    default: "^NOT_ENOUGH_REPLICAS|^REQUEST_TIMED_OUT$|^UNKNOWN_TOPIC|^KAFKA_STORAGE_ERROR$|^COORDINATOR_|^CONCURRENT_TRANSACTIONS$|^OUT_OF_ORDER_SEQUENCE_NUMBER$|^UNKNOWN_PRODUCER_ID$|^THROTTLING_"
    unit: regex
    why: "producers retry for two minutes (delivery.timeout.ms), so a shorter failure loses nothing"
  least_dropped: {default: 100, unit: records, why: "fewer records of an application in an hour are an experiment"}
  restart_hours: {default: 2, unit: h, why: "a rolling restart may take so long; producers retry meanwhile"}
key_metrics: [rejected_requests, dropped_records, retriable_requests, produce_requests, topics]
verdicts:
  rejected:
    status: firing
    severity: warning
    message: "Brokers rejected {{ rejected_requests }} of {{ produce_requests }} produce requests with {{ errors | listed('error', 3) }}."
    details:
      - &topics "{% if topics %}Most affected topics: {{ topics | listed('topic', 3) }}.{% endif %}"
      - "{% if dropped_records %}Producers of {{ apps | listed('app', 3) }} dropped {{ dropped_records }}.{% endif %}"
    impact: "These records are not written and are lost unless the application sends them again."
    actions:
      - "{% if errors[0].error == 'MESSAGE_TOO_LARGE' %}Raise max.message.bytes of the topic, here to 2 MiB, twice the default, or lower max.request.size and batch.size of the producers.{% endif %}"
      - "{% if errors[0].error == 'INVALID_TIMESTAMP' %}Correct the producer's clock, or accept timestamps of up to one day ahead (message.timestamp.after.max.ms).{% endif %}"
      - "{% if errors[0].error == 'INVALID_RECORD' %}Send records with a key to compacted topics, and check the record timestamps.{% endif %}"
      - "Check the producers' logs for the error: a retry does not resolve it."
    commands: &commands
      - "{% if topics %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --describe --all --entity-type topics --entity-name {{ topics[0].topic }}{% endif %}"
      - "{% if topics and errors and errors[0].error == 'MESSAGE_TOO_LARGE' %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --entity-type topics --entity-name {{ topics[0].topic }} --add-config max.message.bytes=2097152{% endif %}"
      - "{% if errors and errors[0].error == 'INVALID_TIMESTAMP' and topics %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --entity-type topics --entity-name {{ topics[0].topic }} --add-config message.timestamp.after.max.ms=86400000{% endif %}"
      - "{% if errors and errors[0].error.value.startswith('NOT_ENOUGH_REPLICAS') %}kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --describe --under-min-isr-partitions{% endif %}"
  retriable_errors:
    status: firing
    severity: warning
    message: "Brokers failed {{ retriable_requests }} of {{ produce_requests }} produce requests with {{ errors | listed('error', 3) }}, for 2 h."
    details:
      - *topics
    impact: "Producers give up after two minutes of retries (delivery.timeout.ms), and their records are lost."
    actions:
      - "{% if errors[0].error.value.startswith('NOT_ENOUGH_REPLICAS') %}Start the brokers that are down: partitions have fewer in-sync replicas than min.insync.replicas.{% endif %}"
      - "{% if errors[0].error.value.startswith('UNKNOWN_TOPIC') %}Create the missing topic, or stop the producer that writes to it.{% endif %}"
      - "Check server.log of the brokers for the error."
    commands: *commands
  failing:
    status: firing
    severity: warning
    message: "{{ failed_produces }} produce operations failed in {{ produce_requests }} requests; the brokers did not report the error codes."
    details:
      - *topics
    impact: "Records may not be written; retries resolve only some of these failures."
    actions:
      - "Check server.log of the brokers and the producers' logs for the error."
    commands: *commands
  dropped:
    status: firing
    severity: warning
    message: "Producers of {{ apps | listed('app', 3) }} dropped {{ dropped_records }} that were never written."
    details:
      - *topics
      - "{% if unbuffered_records %}The producer buffer had no room for {{ unbuffered_records }}.{% endif %}"
    impact: "These records are lost unless the application sends them again."
    actions:
      - "{% if unbuffered_records %}Find out why batches of {{ apps[0].app }} wait: slow brokers or quotas; then raise buffer.memory and max.block.ms.{% endif %}"
      - "{% if not unbuffered_records %}Check the log of {{ apps[0].app }} for the exception: delivery timeout, oversized record, missing topic, or missing permission.{% endif %}"
    commands: *commands
  recovered:
    status: ok
    message: "{{ retriable_requests }} of {{ produce_requests }} produce requests failed with errors that producers retry: a restart, or less than 2 h."
  accepted:
    status: ok
    message: "Failed produce requests of cluster {{ cluster }} are below {{ least_requests }}, or at most {{ least_ratio }} of {{ produce_requests }}."
  not_reported: {status: unknown, message: "Not evaluated: the brokers of cluster {{ cluster }} did not report failed produce requests."}
  no_response:
    status: unknown
    message: "Not evaluated: no broker of cluster {{ cluster }} responded over JMX, or none for long enough to count requests."
open_after_hours: 1
clear_after_hours: 2
description: |
  Produce responses with an error from all brokers of a cluster, except errors without lost records (ignored_errors): at
  least least_requests, and more than least_ratio of all requests. Errors that producers retry (passing_errors) count
  only in two consecutive hours, and not if a broker was started within restart_hours. Where brokers do not expose error
  codes, FailedProduceRequestsPerSec counts, which excludes normal leader changes. Also counted are records that
  applications' producers gave up (record-error-total) or had no buffer for (buffer-exhausted-total): at least
  least_dropped, and more than least_ratio of the application's records.
runbook: |
  ## Meaning
  Brokers answer produce requests with errors, or producers drop records before they send them.
  ## Impact
  The records are not in Kafka. They are lost unless the application keeps and sends them again.
  ## Diagnosis
  1. Read the error code and topic. A response counts once for each error code in it.
  2. Find the producer: record-error-total (metrics.client_hourly) shows which application loses records.
  3. For NOT_ENOUGH_REPLICAS: partitions_under_replicated names the broker.
  ## Mitigation
  1. Correct the setting that the error code names (see actions), at the topic or at the producer.
  2. Restore the brokers, then send the lost records again from their source.
limitations: |
  Brokers do not expose which client was rejected. A producer may split a batch that is too large and write it after all.
  Records dropped before sending (buffer full, delivery.timeout.ms) are known only for JVMs with collected metrics.
  With acks=0 no error is returned. Topics are known only for failures that Kafka counts by topic. Records that an
  application sends again by itself are counted as lost.
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

requests as (
  select
    hour,
    cluster,
    sum(produce_requests) as produce_requests,
    sum(failed_produces) as failed_produces,
    bool_or(produce_errors is not null) as reports_errors,
    bool_or(produce_requests > 0 and produce_errors is null and failed_produces is null) as is_unreported,
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
    e.error ~ :passing_errors as is_retriable,
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
    sum(responses) filter (where not is_retriable) as rejected_requests,
    sum(responses) filter (where is_retriable) as retriable_requests,
    jsonb_agg(jsonb_build_object('error', error, 'requests', responses) order by responses desc, error asc)
      filter (where not is_retriable) as rejected_errors,
    jsonb_agg(jsonb_build_object('error', error, 'requests', responses) order by responses desc, error asc)
      filter (where is_retriable) as retriable_errors
  from error
  group by hour, cluster
),

counted as (
  select
    a.*,
    f.rejected_requests,
    f.retriable_requests,
    f.rejected_errors,
    f.retriable_errors,
    greatest(:least_requests, :least_ratio * a.produce_requests) as least
  from requests as a
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

-- Older producers count a record without buffer space as a record error as well.
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

evaluated as (
  select
    n.*,
    coalesce(n.cluster, d.cluster) as of_cluster,
    d.records as dropped_records,
    d.unbuffered,
    d.apps,
    case
      when n.produce_requests is null and d.cluster is null then 'no_response'
      when n.rejected_requests >= n.least then 'rejected'
      when n.retriable_requests >= n.least and p.retriable_requests >= p.least and not n.is_restarted then 'retriable_errors'
      when not n.reports_errors and n.failed_produces >= n.least then 'failing'
      when d.cluster is not null then 'dropped'
      when n.reports_errors and n.retriable_requests >= n.least then 'recovered'
      when n.is_unreported then 'not_reported'
      else 'accepted'
    end as reason
  from (select * from counted where hour = :hour) as n
  left join counted as p on p.hour = n.hour - interval '1 hour' and n.cluster = p.cluster
  full join dropped as d on n.cluster = d.cluster
)

select
  j.reason,
  j.of_cluster as cluster,
  coalesce(j.rejected_requests, case when j.reports_errors then 0 end) as rejected_requests,
  coalesce(j.retriable_requests, case when j.reports_errors then 0 end) as retriable_requests,
  j.produce_requests,
  j.failed_produces,
  t.rejected_bytes,
  j.dropped_records,
  j.unbuffered as unbuffered_records,
  case when j.reason = 'rejected' then j.rejected_errors else j.retriable_errors end as errors,
  case when j.reason = 'dropped' then d.topics else t.topics end as topics,
  j.apps,
  to_jsonb(case when j.reason = 'dropped' then d.affected else t.affected end) as affected
from evaluated as j
left join topic as t on j.of_cluster = t.cluster
left join dropped_topic as d on j.of_cluster = d.cluster

/*
title: Empty topic polled excessively
resource_kind: topic
owner_role: platform
maturity: stable
is_mutation_tested: false
reads: [metrics.topic_hourly, inventory.topic_hourly, inventory.consumer_member_hourly, metrics.broker_hourly,
  metrics.client_hourly]
params:
  fetches:
    default: 10
    unit: 1/s
    why: "per partition and reader; a consumer that waits for fetch.max.wait.ms (500 ms) fetches twice per second"
  records_per_fetch:
    default: 0.1
    unit: ratio
    why: "a fetch that returns before fetch.max.wait.ms has at least one record"
  waste_ratio:
    default: 10
    unit: ratio
    why: "of network bytes to record bytes of a client; a response with records consists mostly of records"
  follower_spread:
    default: 3
    unit: ratio
    why: "a follower of busy partitions fetches this many times as often as the mean follower"
  handlers_idle_ratio:
    default: 0.3
    unit: ratio
    why: "the limit of the Kafka documentation; below it, requests queue"
key_metrics: [client_fetches_per_second, reader_fetches_per_second, records_per_second, fetches_ratio, handlers_idle_min_ratio]
verdicts:
  client_polling:
    status: firing
    severity: info
    message: >
      Client {{ client_id }} fetches at {{ client_fetches_per_second }} from {{ topic }} and other topics, and receives
      {{ client_records_per_fetch }} records per fetch.
    details:
      - "The client runs on {{ host }} in group {{ first_group_id }}."
      - >
        {% if client_network_in_bytes_per_second %}The client receives {{ client_network_in_bytes_per_second }};
        {{ client_bytes_per_second }} of it are records.{% endif %}
      - &share "{% if fetches_ratio %}Topic {{ topic }} has {{ fetches_ratio }} of all partition fetches in the cluster.{% endif %}"
      - &busy "{% if is_busy %}Request handlers of its brokers were idle for only {{ handlers_idle_min_ratio }} of the time.{% endif %}"
    impact: &impact "Empty fetches occupy request handlers and network of the brokers, which delays other clients."
    actions: &actions
      - "Set fetch.max.wait.ms of {{ client_id or 'the client' }} to 500 (fetch.wait.max.ms in librdkafka)."
      - "Set fetch.min.bytes to at least 1."
      - "If both are set, check its log for errors that are retried without a back-off, and upgrade the client library."
    commands: &commands
      - "kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --members --verbose --group {{ first_group_id }}"
  polled:
    status: firing
    severity: info
    message: >
      Groups reading {{ topic }} ({{ group_ids }}) fetch each partition at {{ reader_fetches_per_second }}, but its topics
      receive only {{ records_per_second }}.
    details:
      - *share
      - *busy
    impact: *impact
    actions: *actions
    commands: *commands
  busy_session:
    status: ok
    message: "The fetch sessions that include {{ topic }} also serve topics with {{ records_per_second }}."
  long_polling:
    status: ok
    message: "Consumers fetch each partition of {{ topic }} at {{ reader_fetches_per_second }} and wait for records."
  unknown_reader:
    status: unknown
    message: >
      Not evaluated: {{ topic }} is fetched at {{ fetches_per_second }} per partition, but clients of its groups report at
      most {{ client_fetches_per_second }}.
  no_group:
    status: unknown
    message: "Not evaluated: {{ topic }} is fetched at {{ fetches_per_second }} per partition, but no consumer group reads it."
  session_unknown:
    status: unknown
    message: "Not evaluated: fetches of the readers of {{ topic }}, or records of their other topics, were not reported."
  follower_fetches_unknown:
    status: unknown
    message: "Not evaluated: partitions or follower fetches of topic {{ topic }} were not reported."
  fetch_rate_unknown:
    status: unknown
    message: "Not evaluated: brokers did not report the fetch rate of {{ topic }} over JMX."
open_after_hours: 2
clear_after_hours: 2
description: |
  Brokers count one fetch per partition of a fetch session (TotalFetchRequestsPerSec). This count, divided by partitions
  and readers, is the fetch rate of a reader. Readers are groups with members that are assigned the topic. Follower
  fetches are subtracted: the highest rate of the brokers, times follower_spread. Fires if the rest exceeds `fetches` and
  all topics of these groups received fewer than records_per_fetch records per fetch.

  Metrics of the clients decide where they are available. A client polls excessively if it sends more than `fetches` to
  each broker of its partitions, and gets fewer than records_per_fetch records per fetch, or waste_ratio times the bytes of
  its records. If all clients of all groups report and none is that fast, another reader is.
  Evaluated are topics with such a fetch rate in this hour or in one of the three hours before. The severity is warning if
  request handlers of a broker were idle for less than handlers_idle_ratio.
runbook: |
  ## Meaning
  Consumers fetch a topic far more often than records arrive.

  ## Impact
  Empty fetches occupy request handlers and network of the brokers.

  ## Diagnosis
  1. Check the configuration of the client: fetch.max.wait.ms and fetch.min.bytes.
  2. Check its log for errors: a client that fetches again at once after an error has the same symptom.

  ## Mitigation
  1. Set fetch.max.wait.ms to 500 and fetch.min.bytes to at least 1.
  2. Upgrade the client library.
limitations: |
  Without client metrics, it is not known which of several groups polls, nor the bytes of empty responses. If a busy topic
  is read in the same session, excessive polling is not detected; with client metrics it is, if another client reads the
  busy topic. Readers without a group are unknown: one that reads busy topics in the same session raises the counter of an
  idle topic. The rate is the mean of an hour.
*/
with broker as materialized (
  select
    cluster,
    count(*) as brokers,
    case
      when count(fetch_follower_requests_per_second) = count(samples) then max(fetch_follower_requests_per_second)
    end as follower_fetches_per_second,
    min(request_handler_idle_min_ratio) as handlers_idle_min_ratio
  from metrics.broker_hourly
  where hour = :hour
  and (active_controllers is null or partitions is not null)  -- else it has no logs
  group by cluster
),

-- Of a partition, in a second.
seen as materialized (
  select
    t.hour,
    t.cluster,
    t.topic,
    i.partitions,
    b.handlers_idle_min_ratio,
    t.messages_in / nullif(t.covered_seconds, 0) as records_per_second,
    t.fetch_requests / nullif(t.covered_seconds, 0) as all_fetches_per_second,
    t.fetch_requests / nullif(t.covered_seconds, 0) / coalesce(i.partitions, 1) as fetches_per_second,
    case
      when i.replication_factor = 1 then 0
      else
        b.follower_fetches_per_second
        * least(1.0, :follower_spread * (i.replication_factor - 1.0) / nullif(b.brokers - 1, 0))
    end as follower_fetches_per_second
  from metrics.topic_hourly as t
  left join inventory.topic_hourly as i
    on t.cluster = i.cluster and t.topic = i.topic and i.hour = :hour
  left join broker as b on t.cluster = b.cluster
  where t.hour = any(array(select :hour - n * interval '1 hour' from generate_series(0, 3) as n))
),

suspect as materialized (
  select
    cluster,
    topic
  from seen
  where fetches_per_second > :fetches + coalesce(follower_fetches_per_second, 0)
  and coalesce(records_per_second < :records_per_fetch * fetches_per_second, true)
  group by cluster, topic
),

assigned as materialized (
  select
    m.cluster,
    m.group_id,
    a.topic,
    min(m.client_id) as client_id
  from inventory.consumer_member_hourly as m
  cross join lateral jsonb_object_keys(m.assignment) as a (topic)
  where m.hour = :hour and m.cluster in (select cluster from suspect)
  group by m.cluster, m.group_id, a.topic
),

-- Who goes through old records is sent more than what came in: as many as its bytes make, or as small ones would.
reader as materialized (
  select
    a.cluster,
    a.group_id,
    case when count(*) = count(came.per_second) then sum(came.per_second) end as records_per_second
  from assigned as a
  left join metrics.topic_hourly as t
    on a.cluster = t.cluster and a.topic = t.topic and t.hour = :hour
  cross join lateral (
    select
      case
        when t.messages_in is not null
          then greatest(t.messages_in, t.bytes_out / coalesce(nullif(t.bytes_in, 0) / nullif(t.messages_in, 0), 100))
      end / nullif(t.covered_seconds, 0) as per_second
  ) as came
  group by a.cluster, a.group_id
),

read as (
  select
    a.cluster,
    a.topic,
    count(*) as readers,
    string_agg(a.group_id, ', ' order by a.group_id) as group_ids,
    min(a.group_id) as first_group_id,
    min(a.client_id) as client_id,
    case when count(*) = count(r.records_per_second) then avg(r.records_per_second) end as records_per_second
  from assigned as a
  inner join reader as r using (cluster, group_id)
  group by a.cluster, a.topic
),

client_fetch as (
  select
    s.cluster,
    f.*
  from (select distinct cluster from suspect) as s
  cross join lateral public.member_fetches(:hour, s.cluster) as f
),

client as (
  select
    s.cluster,
    s.topic,
    m.group_id,
    m.client_id,
    m.host,
    coalesce(t.is_reported, false) as is_reported,
    t.fetches_per_second,
    t.fetches_per_second > :fetches * least(b.brokers, assigned.partitions) as is_fast,
    c.records / nullif(c.fetches, 0) as records_per_fetch,
    c.bytes / c.covered_seconds as bytes_per_second,
    c.network_in_bytes / c.covered_seconds as network_in_bytes_per_second,
    c.network_in_bytes > :waste_ratio * c.bytes or c.records < :records_per_fetch * c.fetches as is_wasteful
  from suspect as s
  inner join inventory.consumer_member_hourly as m
    on m.hour = :hour and s.cluster = m.cluster and m.assignment ? s.topic
  cross join lateral (
    select sum(jsonb_array_length(a.of_topic)) as partitions from jsonb_each(m.assignment) as a (topic, of_topic)
  ) as assigned
  left join broker as b on s.cluster = b.cluster
  left join client_fetch as t on m.cluster = t.cluster and m.client_id = t.client_id
  left join metrics.client_hourly as c
    on c.hour = :hour and t.cluster = c.cluster and t.endpoint = c.endpoint
    and t.client_id = c.client_id and c.kind = 'consumer'
),

fast_client as (
  select distinct on (cluster, topic) *
  from client
  where is_fast and is_wasteful
  order by cluster asc, topic asc, fetches_per_second desc, client_id asc, group_id asc
),

client_summary as (
  select
    cluster,
    topic,
    bool_and(is_reported and not is_fast) as are_slow,
    bool_or(is_reported and (is_fast is null or is_fast and is_wasteful is null)) as is_unknown,
    max(fetches_per_second) as fetches_per_second
  from client
  group by cluster, topic
),

total as (
  select
    cluster,
    sum(all_fetches_per_second) as fetches_per_second
  from seen
  where hour = :hour
  group by cluster
),

measured as (
  select
    s.cluster,
    s.topic,
    now.partitions,
    now.fetches_per_second,
    now.follower_fetches_per_second,
    (greatest(now.fetches_per_second, now.follower_fetches_per_second) - now.follower_fetches_per_second)
    / coalesce(r.readers, 1) as reader_fetches_per_second,
    now.all_fetches_per_second / nullif(total.fetches_per_second, 0) as fetches_ratio,
    now.handlers_idle_min_ratio,
    r.readers,
    r.group_ids,
    coalesce(h.group_id, r.first_group_id) as first_group_id,
    coalesce(h.client_id, r.client_id) as client_id,
    h.host,
    coalesce(h.fetches_per_second, a.fetches_per_second) as client_fetches_per_second,
    h.records_per_fetch as client_records_per_fetch,
    h.bytes_per_second as client_bytes_per_second,
    h.network_in_bytes_per_second as client_network_in_bytes_per_second,
    h.cluster is not null as has_fast_client,
    a.are_slow,
    a.is_unknown as is_client_unknown,
    r.records_per_second
  from suspect as s
  left join seen as now on s.cluster = now.cluster and s.topic = now.topic and now.hour = :hour
  left join read as r on s.cluster = r.cluster and s.topic = r.topic
  left join fast_client as h on s.cluster = h.cluster and s.topic = h.topic
  left join client_summary as a on s.cluster = a.cluster and s.topic = a.topic
  left join total on s.cluster = total.cluster
)

select
  case
    when has_fast_client then 'client_polling'
    when fetches_per_second is null then 'fetch_rate_unknown'
    when partitions is null or follower_fetches_per_second is null then 'follower_fetches_unknown'
    when reader_fetches_per_second <= :fetches then 'long_polling'
    when readers is null then 'no_group'
    when are_slow then 'unknown_reader'
    when records_per_second < :records_per_fetch * reader_fetches_per_second then 'polled'
    when records_per_second is null or is_client_unknown then 'session_unknown'
    else 'busy_session'
  end as reason,
  cluster,
  topic,
  case when handlers_idle_min_ratio < :handlers_idle_ratio then 'warning' end as severity,
  reader_fetches_per_second,
  records_per_second,
  fetches_per_second,
  fetches_ratio,
  handlers_idle_min_ratio,
  handlers_idle_min_ratio < :handlers_idle_ratio as is_busy,
  readers,
  group_ids,
  first_group_id,
  client_id,
  host,
  client_fetches_per_second,
  client_records_per_fetch,
  client_bytes_per_second,
  client_network_in_bytes_per_second
from measured

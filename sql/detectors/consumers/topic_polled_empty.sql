/*
title: Topic is polled though nothing comes
about: topic
owner: platform
maturity: stable
reads: [metrics.topic_hourly, inventory.topic_hourly, inventory.consumer_member_hourly, metrics.broker_hourly]
params:
  fetches: {default: 10, unit: 1/s, why: "of each partition and by each reader; who waits for fetch.max.wait.ms (500 ms) reads it twice a second"}
  records_per_fetch: {default: 0.1, unit: ratio, why: "a fetch that doesn't wait for its full time has one at least"}
  follower_spread: {default: 3, unit: ratio, why: "a follower that copies busy partitions fetches so many times as often as the mean of them"}
  handlers_idle_ratio: {default: 0.3, unit: ratio, why: "Kafka's own advice: below this requests begin to wait"}
convinces: [reader_fetches_per_second, records_per_second, fetches_per_second, fetches_ratio, handlers_idle_min_ratio]
says:
  polled:
    status: alarm
    severity: info
    reason: "{% if readers == 1 %}Group {{ group_ids }} fetches{% else %}Each of {{ readers }} groups ({{ group_ids }}) fetches{% endif %} each partition of {{ topic }} at {{ reader_fetches_per_second }}, though all that it reads gets {{ records_per_second }}. That is {{ fetches_ratio }} of all fetches of partitions in the cluster.{% if is_busy %} Request handlers of its brokers were idle for {{ handlers_idle_min_ratio }} only.{% endif %}"
    cure: "Look at how {{ client_id or 'its client' }} polls: fetch.max.wait.ms should be 500 (fetch.wait.max.ms in librdkafka), fetch.min.bytes 1 or more. If both are, update the client."
    commands: ["kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --members --verbose --group {{ first_group_id }}"]
  beside_busy: {status: ok, reason: "Its readers fetch often, and have reason to: what they read in the same sessions gets {{ records_per_second }}."}
  waits: {status: ok, reason: "A reader fetches each of its partitions at {{ reader_fetches_per_second }}: it waits for records."}
  no_reader: {status: skip, reason: "Each of its partitions is fetched at {{ fetches_per_second }}, by nobody who is a member of a group: who reads what isn't known."}
  neighbours_unknown: {status: skip, reason: "What else its readers read in the same sessions isn't counted, so that the fetches may be for that."}
  followers_unknown: {status: skip, reason: "How many partitions it has, or how many of the fetches are its followers', isn't known."}
  uncounted: {status: skip, reason: "JMX did not tell how often it is fetched."}
open_after_hours: 2
clear_after_hours: 2
rule: |
  Brokers count a fetch for each partition of its session (TotalFetchRequestsPerSec), so that what they count, divided by
  partitions and readers, is how often a reader asks. Readers are groups with members that have the topic assigned.
  Followers' fetches are taken off first: as many as the brokers' busiest gets for each of them, times follower_spread.
  What is left exceeds fetches, and all topics that these groups read got fewer than records_per_fetch records a fetch.
  Judged are topics that were fetched so often in this hour or in one of the three before. A warning where a broker's
  request handlers were idle for less than handlers_idle_ratio.
runbook: |
  1. Whose client: group and client ids are named. Its configuration first: fetch.max.wait.ms, fetch.min.bytes.
  2. A client that fetches again at once after an error does the same: look for errors in its log.
  3. What it costs: the brokers' handlers, and empty answers on the network.
blind_spots: |
  Without clients' own metrics it isn't known which of several groups it is, nor the bytes of empty answers. Readers
  without groups aren't known: one that also reads busy topics in one session makes an idle topic's counter run. Where a
  busy topic is read in the same session, polling too often isn't seen. The pace is the mean of an hour.
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
  where hour = cast(:hour as timestamptz)
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
    on t.cluster = i.cluster and t.topic = i.topic and i.hour = cast(:hour as timestamptz)
  left join broker as b on t.cluster = b.cluster
  where t.hour = any(array(select cast(:hour as timestamptz) - n * interval '1 hour' from generate_series(0, 3) as n))
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
  where m.hour = cast(:hour as timestamptz) and m.cluster in (select cluster from suspect)
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
    on a.cluster = t.cluster and a.topic = t.topic and t.hour = cast(:hour as timestamptz)
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

total as (
  select
    cluster,
    sum(all_fetches_per_second) as fetches_per_second
  from seen
  where hour = cast(:hour as timestamptz)
  group by cluster
),

judged as (
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
    r.first_group_id,
    r.client_id,
    r.records_per_second
  from suspect as s
  left join seen as now on s.cluster = now.cluster and s.topic = now.topic and now.hour = cast(:hour as timestamptz)
  left join read as r on s.cluster = r.cluster and s.topic = r.topic
  left join total on s.cluster = total.cluster
)

select
  case
    when fetches_per_second is null then 'uncounted'
    when partitions is null or follower_fetches_per_second is null then 'followers_unknown'
    when reader_fetches_per_second <= :fetches then 'waits'
    when readers is null then 'no_reader'
    when records_per_second is null then 'neighbours_unknown'
    when records_per_second < :records_per_fetch * reader_fetches_per_second then 'polled'
    else 'beside_busy'
  end as because,
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
  client_id
from judged

/*
title: Topic is polled though nothing comes
resource_kind: topic
owner_role: platform
maturity: stable
reads: [metrics.topic_hourly, inventory.topic_hourly, inventory.consumer_member_hourly, metrics.broker_hourly, metrics.client_hourly]
params:
  fetches: {default: 10, unit: 1/s, why: "of each partition and by each reader; who waits for fetch.max.wait.ms (500 ms) reads it twice a second"}
  records_per_fetch: {default: 0.1, unit: ratio, why: "a fetch that doesn't wait for its full time has one at least"}
  waste_ratio: {default: 10, unit: ratio, why: "of what a client is sent to its records: an answer with records is mostly records"}
  follower_spread: {default: 3, unit: ratio, why: "a follower that copies busy partitions fetches so many times as often as the mean of them"}
  handlers_idle_ratio: {default: 0.3, unit: ratio, why: "Kafka's own advice: below this requests begin to wait"}
key_metrics: [client_fetches_per_second, reader_fetches_per_second, records_per_second, fetches_ratio, handlers_idle_min_ratio]
verdicts:
  client_polls:
    status: firing
    severity: info
    message: "Client {{ client_id }} on {{ host }}, of group {{ first_group_id }}, says that it fetches at {{ client_fetches_per_second }} and gets {{ client_records_per_fetch }} records a fetch{% if client_network_in_bytes_per_second %}: of the {{ client_network_in_bytes_per_second }} that it is sent {{ client_bytes_per_second }} are records{% endif %}. {{ topic }} is among what it reads{% if fetches_ratio %}, with {{ fetches_ratio }} of all fetches of partitions in the cluster{% endif %}.{% if is_busy %} Request handlers of its brokers were idle for {{ handlers_idle_min_ratio }} only.{% endif %}"
    actions:
      - &cure "Look at how {{ client_id or 'its client' }} polls: fetch.max.wait.ms should be 500 (fetch.wait.max.ms in librdkafka), fetch.min.bytes 1 or more. If both are, update the client."
    commands: &commands ["kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --members --verbose --group {{ first_group_id }}"]
  polled:
    status: firing
    severity: info
    message: "{% if readers == 1 %}Group {{ group_ids }} fetches{% else %}Each of {{ readers }} groups ({{ group_ids }}) fetches{% endif %} each partition of {{ topic }} at {{ reader_fetches_per_second }}, though all that it reads gets {{ records_per_second }}. That is {{ fetches_ratio }} of all fetches of partitions in the cluster.{% if is_busy %} Request handlers of its brokers were idle for {{ handlers_idle_min_ratio }} only.{% endif %}"
    actions:
      - *cure
    commands: *commands
  beside_busy: {status: ok, message: "Its readers fetch often, and have reason to: what they read in the same sessions gets {{ records_per_second }}."}
  waits: {status: ok, message: "A reader fetches each of its partitions at {{ reader_fetches_per_second }}: it waits for records."}
  others_poll: {status: unknown, message: "Each of its partitions is fetched at {{ fetches_per_second }}, but the clients of its groups say that they fetch at {{ client_fetches_per_second }} at most: who else reads it isn't known."}
  no_reader: {status: unknown, message: "Each of its partitions is fetched at {{ fetches_per_second }}, by nobody who is a member of a group: who reads what isn't known."}
  neighbours_unknown: {status: unknown, message: "What else its readers read in the same sessions isn't counted, so that the fetches may be for that."}
  followers_unknown: {status: unknown, message: "How many partitions it has, or how many of the fetches are its followers', isn't known."}
  uncounted: {status: unknown, message: "JMX did not tell how often it is fetched."}
open_after_hours: 2
clear_after_hours: 2
description: |
  Brokers count a fetch for each partition of its session (TotalFetchRequestsPerSec), so that what they count, divided by
  partitions and readers, is how often a reader asks. Readers are groups with members that have the topic assigned.
  Followers' fetches are taken off first: as many as the brokers' busiest gets for each of them, times follower_spread.
  What is left exceeds fetches, and all topics that these groups read got fewer than records_per_fetch records a fetch.
  Where clients' own metrics are read they decide: one polls that fetches more often than fetches from each broker of whose
  partitions it has any, and gets fewer than records_per_fetch records a fetch, or is sent waste_ratio times the bytes of
  its records; if all clients of all its groups tell, and none fetches that often, it is none of them.
  Judged are topics that were fetched so often in this hour or in one of the three before. A warning where a broker's
  request handlers were idle for less than handlers_idle_ratio.
runbook: |
  1. Whose client: group and client ids are named. Its configuration first: fetch.max.wait.ms, fetch.min.bytes.
  2. A client that fetches again at once after an error does the same: look for errors in its log.
  3. What it costs: the brokers' handlers, and empty answers on the network.
limitations: |
  Without clients' own metrics it isn't known which of several groups it is, nor the bytes of empty answers, and where a busy
  topic is read in the same session, polling too often isn't seen; with them it is where the busy one is read by another
  client. Readers without groups aren't known: one that also reads busy topics in one session makes an idle topic's counter
  run. The pace is the mean of an hour.
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

-- What members of the topic's groups say of themselves; of those with one client id, the one that fetches most.
told as (
  select
    m.cluster,
    m.client_id,
    count(distinct c.endpoint) >= count(distinct m.member_id) as is_told,
    max(c.fetches / nullif(c.covered_seconds, 0)) as fetches_per_second,
    (array_agg(c.endpoint order by c.fetches / nullif(c.covered_seconds, 0) desc nulls last))[1] as endpoint
  from inventory.consumer_member_hourly as m
  left join metrics.client_hourly as c
    on c.hour = :hour and m.cluster = c.cluster and m.client_id = c.client_id
    and c.kind = 'consumer' and c.fetches / nullif(c.covered_seconds, 0) is not null
  where m.hour = :hour and m.cluster in (select s.cluster from suspect as s)
  group by m.cluster, m.client_id
),

client as (
  select
    s.cluster,
    s.topic,
    m.group_id,
    m.client_id,
    m.host,
    coalesce(t.is_told, false) as is_told,
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
  left join told as t on m.cluster = t.cluster and m.client_id = t.client_id
  left join metrics.client_hourly as c
    on c.hour = :hour and t.cluster = c.cluster and t.endpoint = c.endpoint
    and t.client_id = c.client_id and c.kind = 'consumer'
),

hasty as (
  select distinct on (cluster, topic) *
  from client
  where is_fast and is_wasteful
  order by cluster asc, topic asc, fetches_per_second desc, client_id asc, group_id asc
),

asked as (
  select
    cluster,
    topic,
    bool_and(is_told and not is_fast) as are_slow,
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
    coalesce(h.group_id, r.first_group_id) as first_group_id,
    coalesce(h.client_id, r.client_id) as client_id,
    h.host,
    coalesce(h.fetches_per_second, a.fetches_per_second) as client_fetches_per_second,
    h.records_per_fetch as client_records_per_fetch,
    h.bytes_per_second as client_bytes_per_second,
    h.network_in_bytes_per_second as client_network_in_bytes_per_second,
    h.cluster is not null as has_hasty_client,
    a.are_slow,
    r.records_per_second
  from suspect as s
  left join seen as now on s.cluster = now.cluster and s.topic = now.topic and now.hour = :hour
  left join read as r on s.cluster = r.cluster and s.topic = r.topic
  left join hasty as h on s.cluster = h.cluster and s.topic = h.topic
  left join asked as a on s.cluster = a.cluster and s.topic = a.topic
  left join total on s.cluster = total.cluster
)

select
  case
    when has_hasty_client then 'client_polls'
    when fetches_per_second is null then 'uncounted'
    when partitions is null or follower_fetches_per_second is null then 'followers_unknown'
    when reader_fetches_per_second <= :fetches then 'waits'
    when readers is null then 'no_reader'
    when are_slow then 'others_poll'
    when records_per_second is null then 'neighbours_unknown'
    when records_per_second < :records_per_fetch * reader_fetches_per_second then 'polled'
    else 'beside_busy'
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
from judged

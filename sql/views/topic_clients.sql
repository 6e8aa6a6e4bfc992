-- Producers and consumers of topics in the newest gathered hour: clients of applications by their own metrics, and group
-- members by their assignment. Clients without a readable JVM, and topics beyond a client's first 100, are known from the latter only.
create or replace view public.topic_clients as
with member as materialized (
  select
    m.cluster,
    a.topic,
    'consumer' as kind,
    m.client_id,
    string_agg(distinct m.group_id, ', ') as group_ids,
    max(m.hour) as hour
  from inventory.consumer_member_hourly as m
  cross join lateral jsonb_object_keys(m.assignment) as a (topic)
  where m.hour = (select max(hour) from inventory.consumer_member_hourly)
  group by m.cluster, a.topic, m.client_id
),

client as materialized (
  select
    c.cluster,
    c.topic,
    c.kind,
    c.client_id,
    string_agg(distinct c.app, ', ') as apps,
    sum(c.records_per_second) as records_per_second,
    sum(c.bytes_per_second) as bytes_per_second,
    sum(c.record_errors) as record_errors,
    newest.hour
  from (select max(hour) as hour from metrics.client_topic_hourly) as newest
  cross join lateral public.client_topics(newest.hour) as c
  group by c.cluster, c.topic, c.kind, c.client_id, newest.hour
)

select
  cluster,  -- Kafka cluster
  topic,  -- Topic
  kind,  -- producer or consumer
  client_id,  -- Client id, shared by one or more clients
  c.apps,  -- Applications in which it runs; null: no JVM that is read
  m.group_ids,  -- Groups in which it is a member with this topic assigned; null: none (producers, restore consumers)
  c.records_per_second,  -- Records sent or consumed per second; null: not reported
  c.bytes_per_second,  -- Bytes of these per second: as sent for a producer, uncompressed for a consumer
  c.record_errors,  -- Records that failed in the hour
  coalesce(c.hour, m.hour) as hour  -- Start of the hour (UTC)
from client as c
full join member as m using (cluster, topic, kind, client_id)
order by cluster asc, topic asc, kind desc, bytes_per_second desc nulls last, client_id asc;

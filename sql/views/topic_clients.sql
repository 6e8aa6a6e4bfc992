-- Who produces and consumes what, in the newest gathered hours: applications' clients by their own metrics, and members of
-- groups by what is assigned to them; of clients whose JVM isn't read, and of the topics of one beyond 100, only these.
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
  client_id,  -- Client id, of one or more clients
  c.apps,  -- Applications in whose JVMs it is; null: no JVM that is read
  m.group_ids,  -- Groups of which it is a member to which the topic is assigned; null: none, as of producers, and of consumers that restore state
  c.records_per_second,  -- Records that it sends or reads; null: it doesn't tell
  c.bytes_per_second,  -- Bytes of these: a producer's as they are sent, a consumer's uncompressed
  c.record_errors,  -- Records that it gave up in the hour
  coalesce(c.hour, m.hour) as hour  -- The hour (UTC)
from client as c
full join member as m using (cluster, topic, kind, client_id)
order by cluster asc, topic asc, kind desc, bytes_per_second desc nulls last, client_id asc;

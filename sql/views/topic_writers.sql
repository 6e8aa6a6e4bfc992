-- Who writes each topic in the newest gathered hour: producers by the metrics of JVM clients, and Kafka Streams applications that own it.
create or replace view public.topic_writers as
with writer as (
  select
    c.cluster,
    c.topic,
    c.apps as application,
    c.client_id,
    c.records_per_second,
    c.bytes_per_second,
    c.record_errors,
    'client metrics' as basis,
    c.hour
  from public.topic_clients as c
  where c.kind = 'producer'
  union all
  select
    t.cluster,
    t.topic,
    t.application_id,
    null,
    null,
    null,
    null,
    'internal topic',
    t.hour
  from inventory.topic_hourly as t
  where t.hour = (select max(hour) from inventory.topic_hourly) and t.application_id is not null
)

select
  w.cluster,  -- Kafka cluster
  w.topic,  -- Topic
  w.application,  -- Application of the producer
  w.client_id,  -- client.id of the producer; null: known by ownership of an internal topic
  a.owner,  -- Owner of the application; null: unassigned
  w.records_per_second,  -- Records sent per second; null: not reported
  w.bytes_per_second,  -- Bytes sent per second; null: not reported
  w.record_errors,  -- Records that failed in the hour
  w.basis,  -- client metrics, or internal topic of the application
  w.hour  -- Start of the hour (UTC)
from writer as w
left join detect.resource as a on public.resource_key('application', w.cluster, w.application) = a.key;

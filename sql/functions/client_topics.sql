-- Records and bytes that clients of applications sent to or consumed from each topic in an hour, by their own metrics.
-- Consumers before Kafka 4.1 report _ for each dot of a topic: the name is restored where only one topic matches.
create or replace function public.client_topics(as_of timestamptz) returns table (
  cluster text, topic text, kind text, client_id text, app text, endpoint text, records_per_second double precision,
  bytes_per_second double precision, record_errors double precision
) language sql stable as $$
  select
    c.cluster,
    coalesce(d.topic, c.topic),
    c.kind,
    c.client_id,
    c.app,
    c.endpoint,
    c.records / c.covered_seconds,
    c.bytes / c.covered_seconds,
    c.record_errors
  from metrics.client_topic_hourly as c
  left join (
    select t.cluster, replace(t.topic, '.', '_') as reported_topic, min(t.topic) as topic
    from inventory.topic_hourly as t
    where t.hour = as_of
    group by t.cluster, replace(t.topic, '.', '_')
    having count(*) = 1 and min(t.topic) like '%.%'
  ) as d on c.cluster = d.cluster and c.topic = d.reported_topic and c.kind = 'consumer'
  where c.hour = as_of
$$;
comment on function public.client_topics is
'Records and bytes that clients of applications sent to or consumed from each topic in an hour, by their own metrics, with topic names as in the cluster.';

-- What applications' clients sent or read of each topic in an hour, by their own metrics, topics named as the cluster
-- names them: consumers before Kafka 4.1 write _ for each dot of one. Where that may be two topics it stands as they tell it.
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
'What applications'' clients sent or read of each topic in an hour, by their own metrics, topics named as the cluster names them.';

-- Bytes that consumers fetched from a topic in the hours that end with one, and the number of hours with JMX data. Hour by
-- hour, by the primary key: used for few idle topics, because weeks of all topics are too many rows.
create or replace function public.topic_sent(of_cluster text, of_topic text, as_of timestamptz, hours integer) returns table (
  bytes_out double precision, known_hours bigint
) language sql stable rows 1 as $$
  select sum(h.bytes_out), count(h.bytes_out)
  from generate_series(0, hours - 1) as n (ago)
  cross join lateral (
    select t.bytes_out
    from metrics.topic_hourly as t
    where t.hour = as_of - make_interval(hours => n.ago) and t.cluster = of_cluster and t.topic = of_topic
  ) as h
$$;
comment on function public.topic_sent is
'Bytes that consumers fetched from a topic in the hours that end with one, and the number of hours with JMX data.';

-- Baseline of bytes sent to consumers per byte produced, by topic, from the days before: 2 if two groups read all of it
-- continuously. Only topics with baseline_hours of data, and only those in of_topics if it is given.
create or replace function public.baseline_readers(
  of_cluster text, as_of timestamptz, baseline_days integer, baseline_hours integer, of_topics text[] default null
) returns table (topic text, sent_per_byte double precision) language sql stable as $$
  -- The lower quartile: what is sent in three of four hours.
  select topic, percentile_cont(0.25) within group (order by bytes_out / bytes_in)
  from metrics.topic_hourly
  where cluster = of_cluster and hour >= as_of - make_interval(days => baseline_days) and hour < as_of
  and bytes_in > 0 and bytes_out is not null and (of_topics is null or topic = any(of_topics))
  group by topic
  having count(*) >= baseline_hours
$$;

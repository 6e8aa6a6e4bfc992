-- What readers of each topic are sent all the time for each byte that comes in, by the days before: 2 if two of them never
-- stop. Only of topics known for usual_hours, and of those that are asked for, if any are.
create or replace function public.baseline_readers(
  of_cluster text, as_of timestamptz, usual_days integer, usual_hours integer, of_topics text[] default null
) returns table (topic text, sent_per_byte double precision) language sql stable as $$
  -- The least quarter of the hours: what is there in three of four.
  select topic, percentile_cont(0.25) within group (order by bytes_out / bytes_in)
  from metrics.topic_hourly
  where cluster = of_cluster and hour >= as_of - make_interval(days => usual_days) and hour < as_of
  and bytes_in > 0 and bytes_out is not null and (of_topics is null or topic = any(of_topics))
  group by topic
  having count(*) >= usual_hours
$$;

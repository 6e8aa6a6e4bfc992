-- What readers of each topic are sent all the time for each byte that comes in: 2 if two of them never stop.
create or replace function public.usual_readers(
  of_cluster text, as_of timestamptz, usual_days integer, usual_hours integer
) returns table (topic text, sent_per_byte double precision) language sql stable as $$
  -- The least quarter of the hours: what is there in three of four.
  select topic, percentile_cont(0.25) within group (order by bytes_out / bytes_in)
  from metrics.topic_hourly
  where cluster = of_cluster and hour >= as_of - make_interval(days => usual_days) and hour < as_of
  and bytes_in > 0 and bytes_out is not null
  group by topic
  having count(*) >= usual_hours
$$;
comment on function public.usual_readers is
'What readers of each topic are sent all the time for each byte that comes in, by the days before; only of topics known for usual_hours.';

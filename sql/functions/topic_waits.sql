-- How long records of a topic wait in the log for a group, from the lag and the rate of arriving records: a minimum, as
-- records that were read since the last commit still count as lag, and a maximum. Means over the partitions.
create or replace function public.topic_waits(of_cluster text, of_group_id text, as_of timestamptz) returns table (
  topic text, least_seconds double precision, most_seconds double precision,
  worst_seconds double precision               -- the minimum of the partition with the longest wait
) language sql stable rows 10 as $$
  select
    c.topic,
    avg(w.least_seconds),
    avg(w.most_seconds),
    max(w.least_seconds)
  from metrics.consumer_partition_hourly as c
  cross join lateral (
    select case when c.lag_records = 0 then 0 else c.lag_records / nullif(c.arriving_per_second, 0) end as most_seconds
  ) as l
  cross join lateral (
    select
      l.most_seconds,
      greatest(l.most_seconds - c.commit_gap_p95_seconds, 0) as least_seconds
    where l.most_seconds = 0 or c.commit_gap_p95_seconds is not null
  ) as w
  where c.hour = as_of and c.cluster = of_cluster and c.group_id = of_group_id and w.most_seconds is not null
  group by c.topic
$$;
comment on function public.topic_waits is
'How long records of a topic wait in the log for a group: a minimum and a maximum, in seconds.';

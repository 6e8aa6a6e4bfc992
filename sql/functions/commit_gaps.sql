-- The typical time between two commits of each partition of a group, in the 24 hours that end with an hour: within an hour,
-- as at the percentile `gap_rank` (0 to 1) of the hours, or, for a partition that commits less often, since the commit before.
create or replace function public.commit_gaps(
  of_cluster text, of_group_id text, as_of timestamptz, gap_rank double precision
) returns table (
  topic text, partition integer,
  gap_seconds double precision                 -- null: one commit at most
) language sql stable rows 50 as $$
  select
    topic,
    partition,
    greatest(
      percentile_cont(gap_rank) within group (order by commit_gap_p95_seconds),
      percentile_cont(0.5) within group (
        order by extract(epoch from committed_at - committed_before)::double precision / commits
      )
    )
  from (
    select
      *,
      lag(committed_at) over (partition by topic, partition order by hour) as committed_before
    from metrics.consumer_partition_hourly
    -- A list of hours lets PostgreSQL find the group in each of them by the primary key.
    where hour = any(array(select as_of - make_interval(hours => n) from generate_series(0, 23) as n))
    and cluster = of_cluster and group_id = of_group_id and commits > 0
  ) as committed
  group by topic, partition
$$;
comment on function public.commit_gaps is
'The typical time between two commits of each partition of a group in the last 24 hours, in seconds.';

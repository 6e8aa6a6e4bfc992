-- Groups that first appeared in the last `new_days` days. Twice as many days of history are read, and the groups of a
-- cluster's first day of history are not new: they may have existed before.
create or replace function public.new_groups(as_of timestamptz, new_days integer) returns table (
  cluster text, group_id text, first_hour timestamptz
) language sql stable rows 50 as $$
  with known as (
    select
      cluster,
      group_id,
      min(hour) as first_hour
    from metrics.consumer_group_hourly
    where hour > as_of - make_interval(days => 2 * new_days) and hour <= as_of
    group by cluster, group_id
  )

  select
    cluster,
    group_id,
    first_hour
  from (
    select
      *,
      min(first_hour) over (partition by cluster) as cluster_first_hour
    from known
  ) as g
  where first_hour > as_of - make_interval(days => new_days) and first_hour > cluster_first_hour + interval '24 hours'
$$;
comment on function public.new_groups is
'Consumer groups that first appeared in the last days, except those of a cluster''s first day of history.';

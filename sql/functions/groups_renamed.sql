-- Groups that follow on another: it ended, and a group with members on the very same topics appeared within a day of its
-- last commit, in a cluster that had been known for longer. Who commits without members, as Flink does, hasn't ended.
create or replace function public.groups_renamed(as_of timestamptz, history_days integer) returns table (
  cluster text, former_group text, group_id text
) language sql stable rows 100 as $$
  with topics as materialized (
    select
      t.cluster,
      t.group_id,
      array_agg(t.topic order by t.topic) as names,
      max(t.committed_at) as committed_at
    from (
      select p.cluster, p.group_id, p.topic, max(p.committed_at) as committed_at
      from metrics.consumer_partition_hourly as p
      where p.hour = as_of
      and p.cluster in (select g.cluster from metrics.consumer_group_hourly as g where g.hour = as_of and g.members = 0)
      group by p.cluster, p.group_id, p.topic
    ) as t
    group by t.cluster, t.group_id
  ),

  alone as materialized (
    select * from public.commits_without_members(as_of)
  ),

  lived as materialized (
    select t.*, g.members > 0 or coalesce(a.is_committing, false) as is_alive
    from topics as t
    inner join metrics.consumer_group_hourly as g using (cluster, group_id)
    left join alone as a using (cluster, group_id)
    where g.hour = as_of
  ),

  successor as (
    select e.cluster, e.group_id as former_group, h.group_id, e.committed_at, life.first_hour
    from lived as e
    inner join lived as h on e.cluster = h.cluster and e.names = h.names
    cross join lateral (
      select min(g.hour) as first_hour
      from metrics.consumer_group_hourly as g
      where g.hour > as_of - make_interval(days => history_days) and g.hour <= as_of
      and g.cluster = h.cluster and g.group_id = h.group_id
    ) as life
    where not e.is_alive and h.is_alive
  )

  select h.cluster, h.former_group, min(h.group_id)
  from successor as h
  where
    h.committed_at between h.first_hour - interval '24 hours' and h.first_hour + interval '24 hours'
    and exists (
      select 1 from metrics.consumer_group_hourly as g
      where g.hour > as_of - make_interval(days => history_days)
      and g.hour < h.first_hour - interval '24 hours' and g.cluster = h.cluster
    )
  group by h.cluster, h.former_group
$$;
comment on function public.groups_renamed is
'Groups that ended when another one began to read the very same topics: it was renamed.';

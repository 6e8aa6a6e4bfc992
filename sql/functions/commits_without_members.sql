-- Groups that commit without members, as Flink jobs do with each completed checkpoint: in at least three of the last 24
-- hours, without a member or a generation in any of them. Offsets that are reset manually appear in one hour only.
create or replace function public.commits_without_members(as_of timestamptz) returns table (
  cluster text, group_id text,
  is_committing boolean                        -- in this hour; false: in earlier hours only
) language sql stable rows 100 as $$
  select
    g.cluster,
    g.group_id,
    bool_or(g.hour = as_of and g.commits > 0)
  from metrics.consumer_group_hourly as g
  where g.hour > as_of - interval '24 hours' and g.hour <= as_of
  group by g.cluster, g.group_id
  having count(*) filter (where g.commits > 0 and g.members = 0 and g.rebalances = 0) >= 3
  and count(*) filter (where g.members > 0 or g.rebalances > 0) = 0
$$;
comment on function public.commits_without_members is
'Groups that commit without members, as Flink jobs do with each completed checkpoint: in at least three of the last 24 hours, without a member or a generation.';

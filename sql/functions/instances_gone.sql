-- Instances that EC2 listed in some hours, and whether they still run in the last of them. EC2 returns each account and
-- region separately: without one of them an instance is not gone but unknown, and has no row.
create or replace function public.instances_gone(as_of timestamptz, look_back_hours integer) returns table (
  instance_id text,
  state text,                                  -- null: no longer listed
  is_gone boolean
) language sql stable rows 500 as $$
  select
    known.instance_id,
    n.state,
    coalesce(n.state, '') <> 'running'
  from (
    select distinct instance_id, account, region
    from inventory.instance_hourly
    where hour > as_of - make_interval(hours => look_back_hours) and hour <= as_of
  ) as known
  left join inventory.instance_hourly as n on n.hour = as_of and known.instance_id = n.instance_id
  where exists (
    select
    from inventory.instance_hourly as i
    where i.hour = as_of and known.account = i.account and known.region = i.region
  )
$$;
comment on function public.instances_gone is
'Instances that EC2 listed in some hours, and whether they still run in the last of them.';

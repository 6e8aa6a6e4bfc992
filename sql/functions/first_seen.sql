-- Latest row of each resource in the 24 hours that end with an hour, joined by its newest hour: sorting a day of all rows
-- takes ten times as long. Separate functions with ROWS make the planner expect many rows, whatever its statistics say.
-- Planned for each hour: PostgreSQL 18 caches a function's plan, and from the sixth call of a session on the generic
-- plan takes up to eighty times as long.
create or replace function public.instances_seen(as_of timestamptz) returns table (
  account text, region text, instance_id text, name text, application text, owner text, hour timestamptz
) language sql stable rows 2000 set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_custom_plan as $$
  select i.account, i.region, i.instance_id, i.name, i.application, i.owner, i.hour
  from inventory.instance_hourly as i
  inner join (
    select account, region, instance_id, max(hour) as hour
    from inventory.instance_hourly
    where hour > as_of - interval '24 hours' and hour <= as_of
    group by account, region, instance_id
  ) as newest using (account, region, instance_id, hour)
  where i.hour > as_of - interval '24 hours' and i.hour <= as_of
$$;

create or replace function public.volumes_seen(as_of timestamptz) returns table (
  account text, region text, volume_id text, name text, application text, owner text, instance_id text,
  hour timestamptz
) language sql stable rows 5000 set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_custom_plan as $$
  select v.account, v.region, v.volume_id, v.name, v.application, v.owner, v.instance_id, v.hour
  from inventory.volume_hourly as v
  inner join (
    select account, region, volume_id, max(hour) as hour
    from inventory.volume_hourly
    where hour > as_of - interval '24 hours' and hour <= as_of
    group by account, region, volume_id
  ) as newest using (account, region, volume_id, hour)
  where v.hour > as_of - interval '24 hours' and v.hour <= as_of
$$;

create or replace function public.topics_seen(as_of timestamptz) returns table (
  cluster text, topic text, application_id text, hour timestamptz
) language sql stable rows 10000 set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_custom_plan as $$
  select t.cluster, t.topic, t.application_id, t.hour
  from inventory.topic_hourly as t
  inner join (
    select cluster, topic, max(hour) as hour
    from inventory.topic_hourly
    where hour > as_of - interval '24 hours' and hour <= as_of
    group by cluster, topic
  ) as newest using (cluster, topic, hour)
  where t.hour > as_of - interval '24 hours' and t.hour <= as_of
$$;

create or replace function public.stores_seen(as_of timestamptz) returns table (
  cluster text, topic text, application_id text, hour timestamptz
) language sql stable rows 1000 set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_custom_plan as $$
  select s.cluster, s.topic, s.application_id, s.hour
  from metrics.state_store_hourly as s
  inner join (
    select cluster, topic, max(hour) as hour
    from metrics.state_store_hourly
    where hour > as_of - interval '24 hours' and hour <= as_of
    group by cluster, topic
  ) as newest using (cluster, topic, hour)
  where s.hour > as_of - interval '24 hours' and s.hour <= as_of
$$;

create or replace function public.processes_seen(as_of timestamptz) returns table (
  cluster text, endpoint text, app text, instance_id text, application_id text, hour timestamptz
) language sql stable rows 1000 set enable_nestloop = off set plan_cache_mode = force_custom_plan as $$
  with process as (
    select cluster, endpoint, app, instance_id, application_id, hour
    from metrics.jvm_app_hourly
    where hour > as_of - interval '24 hours' and hour <= as_of
  )

  -- A process that does not respond belongs to the same application as others of its name.
  select distinct on (p.cluster, p.endpoint)
    p.cluster, p.endpoint, p.app, p.instance_id, coalesce(p.application_id, named.application_id), p.hour
  from process as p
  inner join (
    select cluster, endpoint, max(hour) as hour from process group by cluster, endpoint
  ) as newest using (cluster, endpoint, hour)
  inner join (
    select cluster, app, max(application_id) as application_id from process group by cluster, app
  ) as named using (cluster, app)
$$;

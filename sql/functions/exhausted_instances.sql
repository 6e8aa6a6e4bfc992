-- When the CPU or the memory of an instance was exhausted: periods of data points at a limit between two times. A data
-- point is valid until the next one, but at most for the five minutes of basic monitoring.
create or replace function public.exhausted_periods(
  of_account text, of_region text, of_instance_id text, from_at timestamptz, until_at timestamptz,
  cpu_limit_percent double precision, memory_limit_percent double precision
) returns table (
  resource_name text,                          -- cpu or memory
  since timestamptz, upto timestamptz
) language sql stable rows 2 as $$
  with reading as (
    select
      r.resource_name,
      s.at,
      r.percent >= r.limit_percent as is_full,
      least(
        lead(s.at) over (partition by r.resource_name order by s.at), s.at + interval '5 minutes', until_at
      ) as to_at
    from metrics.instance_sample as s
    cross join lateral (
      values ('cpu', s.cpu_percent, cpu_limit_percent), ('memory', s.memory_used_percent, memory_limit_percent)
    ) as r (resource_name, percent, limit_percent)
    where s.account = of_account and s.region = of_region and s.instance_id = of_instance_id
    and s.at >= from_at and s.at < until_at
    and r.percent is not null
  )

  select
    resource_name,
    min(at),
    max(to_at)
  from (
    select
      *,
      count(*) filter (where not is_full) over (partition by resource_name order by at) as breaks
    from reading
  ) as counted
  where is_full
  group by resource_name, breaks
$$;
comment on function public.exhausted_periods is
'When the CPU or the memory of an instance was at a limit between two times.';

-- Running instances with exhausted CPU in the last quarter of the hour and for at least `full_minutes`, and since when memory
-- was exhausted before that.
create or replace function public.instances_exhausted(
  as_of timestamptz, cpu_limit_percent double precision, memory_limit_percent double precision, full_minutes integer
) returns table (
  account text, region text, instance_id text, cpu_full_at timestamptz,
  memory_short_at timestamptz                  -- null: memory was not exhausted, or not reported
) language sql stable rows 10 as $$
  with period as materialized (
    select i.account, i.region, i.instance_id, s.*
    from metrics.instance_health_hourly as i
    cross join lateral public.exhausted_periods(
      i.account, i.region, i.instance_id, as_of - interval '1 hour', as_of + interval '1 hour',
      cpu_limit_percent, memory_limit_percent
    ) as s
    where i.hour = as_of and i.state = 'running'
  )

  select c.account, c.region, c.instance_id, c.since, m.since
  from period as c
  left join period as m
    on c.account = m.account and c.region = m.region and c.instance_id = m.instance_id
    and m.resource_name = 'memory' and c.since >= m.since and c.upto - interval '5 minutes' <= m.upto
  where c.resource_name = 'cpu' and c.upto > as_of + interval '45 minutes'
  and c.upto - c.since >= make_interval(mins => full_minutes)
$$;
comment on function public.instances_exhausted is
'Running instances with exhausted CPU at the end of the hour, and since when their memory was exhausted before.';

-- Instances that Auto Scaling terminated for failed health checks, or that ended otherwise, in the hours up to as_of, and
-- which resource was exhausted until then. An instance that ended otherwise counts as failed if it is not a spot instance
-- and memory was exhausted before CPU.
create or replace function public.terminated_instances(
  as_of timestamptz, look_back_hours integer, health_causes text, ended_causes text,
  cpu_limit_percent double precision, memory_limit_percent double precision, full_minutes integer
) returns table (
  account text, region text, scaling_group text, instance_id text, cause text, started_at timestamptz,
  memory_short_at timestamptz, cpu_full_at timestamptz, is_memory_first boolean, is_by_check boolean
) language sql stable rows 10 as $$
  select
    a.account,
    a.region,
    a.scaling_group,
    a.instance_id,
    a.cause,
    a.started_at,
    b.memory_short_at,
    b.cpu_full_at,
    m.is_memory_first,
    not a.cause ~ ended_causes or (m.is_memory_first and spot.is_spot is not true)
  from metrics.scaling_activity_hourly as a
  cross join lateral (
    select bool_or(h.is_spot) as is_spot
    from metrics.instance_health_hourly as h
    where h.account = a.account and h.region = a.region and h.instance_id = a.instance_id
    and h.hour > a.hour - interval '24 hours' and h.hour <= a.hour
  ) as spot
  cross join lateral (
    select
      min(s.since) filter (where s.resource_name = 'memory') as memory_short_at,
      min(s.since) filter (where s.resource_name = 'cpu') as cpu_full_at
    from public.exhausted_periods(
      a.account, a.region, a.instance_id, a.started_at - interval '2 hours', a.started_at,
      cpu_limit_percent, memory_limit_percent
    ) as s
    where s.upto > a.started_at - make_interval(mins => full_minutes)
  ) as b
  cross join lateral (
    select coalesce(b.memory_short_at <= b.cpu_full_at, b.memory_short_at is not null) as is_memory_first
  ) as m
  where a.hour > as_of - make_interval(hours => look_back_hours) and a.hour <= as_of
  and a.is_termination and a.instance_id is not null and a.status not in ('Failed', 'Cancelled')
  and (a.cause ~ health_causes or a.cause ~ ended_causes)
$$;
comment on function public.terminated_instances is
'Instances that Auto Scaling terminated for failed health checks or that ended otherwise, and what was exhausted before.';

-- Capacity at the end of a period: for each kind the resources that are fullest, or reach their limit first at the growth of
-- the last 35 days (a straight line through the daily maxima; at least 7 days). `owner`: only resources of one owner.
with daily as (
  select d.*
  from public.capacity_by_day(cast(:finish as timestamptz) - interval '35 days', cast(:finish as timestamptz)) as d
  left join public.resource as r on d.resource = r.key
  where cast(:owner as text) is null or coalesce(r.owner, '') = cast(:owner as text)
),

trend as (
  select
    kind,
    name,
    resource,
    count(*) as days,
    max(day) as last_day,
    (array_agg(used order by day desc))[1] as used,
    (array_agg(capacity order by day desc))[1] as capacity,
    case when count(*) >= 7 then regr_slope(used, extract(epoch from day) / 86400) end as growth_per_day
  from daily
  group by kind, name, resource
),

dated as (
  select
    *,
    used / capacity as ratio,
    case
      when used >= capacity then last_day
      when growth_per_day > 0 and (capacity - used) / growth_per_day < 365
        then last_day + (capacity - used) / growth_per_day * interval '1 day'
    end as full_at
  from trend
),

ranked as (
  select
    *,
    row_number() over (partition by kind order by full_at asc nulls last, ratio desc, name asc) as place,
    count(*) over (partition by kind) as resources
  from dated
)

select kind, name, resource, days, used, capacity, ratio, growth_per_day, full_at, resources
from ranked
where place <= cast(:most as integer)
order by array_position(array['disk', 'memory', 'partitions', 'file descriptors', 'network'], kind), place

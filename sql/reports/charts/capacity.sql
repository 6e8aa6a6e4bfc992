/*
title: Fullest resource of each kind, by day
unit: percent
kind: lines
shades_hour: false
why: A line that rises to 100 % reaches its limit.
*/
with daily as (
  select * from public.capacity_by_day(cast(:hour as timestamptz) - interval '35 days', cast(:hour as timestamptz))
)

-- A line needs two days.
select
  day as at,
  initcap(left(kind, 1)) || substr(kind, 2) as series,
  100 * max(used / capacity) as value
from daily
where (select count(distinct d.day) > 1 from daily as d)
group by day, kind
union all
select distinct
  day as at,
  'limit Limit (100 %)' as series,
  100 as value
from daily
where (select count(distinct d.day) > 1 from daily as d)
order by at, series

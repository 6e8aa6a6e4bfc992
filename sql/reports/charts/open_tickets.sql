/*
title: Open at the end of each day
unit: findings
kind: lines
shades_hour: false
why: Whether the fleet gets better or worse.
*/
with counted as (
  select
    day as at,
    severity.severity as series,
    case when day > (select min(j.hour) from detect.detector_run as j where j.status = 'evaluated') then (
      select count(*)
      from tickets.ticket as t
      where
        t.severity = severity.severity and t.detector <> 'storm' and t.opened_hour < day
        and (t.closed_hour is null or t.closed_hour >= day)
    ) end as value
  from generate_series(:hour - interval '27 days', :hour, interval '1 day') as day
  cross join (values ('critical'), ('warning')) as severity (severity)
)

-- A line needs two days, and something to show.
select *
from counted
where (select count(distinct c.at) > 1 and max(c.value) > 0 from counted as c where c.value is not null)
order by series, at

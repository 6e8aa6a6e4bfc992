/*
title: Open at the end of each day
unit: findings
kind: lines
shades_hour: false
why: Whether the fleet gets better or worse.
*/
select
  day as at,
  severity as series,
  (
    select count(*)
    from tickets.ticket as t
    where
      t.severity = severity.severity and t.detector <> 'storm' and t.opened_hour < day
      and (t.closed_hour is null or t.closed_hour >= day)
  ) as value
from generate_series(:hour - interval '27 days', :hour, interval '1 day') as day
cross join (values ('critical'), ('warning')) as severity (severity)
order by series, at

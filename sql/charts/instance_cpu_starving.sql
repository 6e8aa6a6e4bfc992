/*
title: CPU credits that are left
unit: credits
kind: lines
why: "By the hour of a week: saw-teeth are spent and earned back each day; a line that lies at 0 is a machine held to its baseline, or one that borrows."
*/
select
  h.hour as at,
  line.series,
  line.value
from metrics.instance_health_hourly as h
cross join lateral (
  values ('left', h.cpu_credits), ('borrowed', nullif(h.cpu_credits_borrowed, 0))
) as line (series, value)
where h.account = :account and h.region = :region and h.instance_id = :instance_id and line.value is not null
and h.hour > :hour - interval '7 days' and h.hour <= :hour
order by at, series

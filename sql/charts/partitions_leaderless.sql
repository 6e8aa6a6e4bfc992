/*
title: Partitions without a leader
unit: partitions
kind: lines
why: "By the hour, and those of them without a replica in sync: a broker that comes back ends it at once."
*/
select
  p.hour as at,
  line.series,
  line.value
from (
  select
    hour,
    count(*) filter (where leader is null) as leaderless,
    count(*) filter (where leader is null and isr = 0) as without_isr
  from metrics.partition_hourly
  where cluster = :cluster
  and hour > :hour - interval '24 hours' and hour <= :hour
  group by hour
) as p
cross join lateral (
  values ('without a leader', p.leaderless), ('without a replica in sync', p.without_isr)
) as line (series, value)
order by at, series

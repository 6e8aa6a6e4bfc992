/*
title: Partitions without a leader
unit: partitions
kind: lines
why: "Last 24 hours, by hour. Partitions without an in-sync replica recover only when a former ISR member returns."
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
  values ('without a leader', p.leaderless), ('without an in-sync replica', p.without_isr)
) as line (series, value)
order by at, series

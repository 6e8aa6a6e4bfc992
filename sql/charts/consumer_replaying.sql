/*
title: Lag of the group by hour
unit: seconds
kind: lines
why: "A week, and the other group that lags most beside it: each peak is old records, read from the brokers' disks."
*/
select
  hour as at,
  case group_id when :group_id then 'this group' else 'the others, worst' end as series,
  max(lag_seconds_max) as value
from metrics.consumer_group_hourly
where hour > :hour - interval '7 days' and hour <= :hour
and cluster = :cluster and lag_seconds_max is not null
group by at, series
order by at, series

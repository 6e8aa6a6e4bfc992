/*
title: Consumer lag by hour
unit: seconds
kind: lines
why: "One week: each peak of this group is cold data that brokers read from disk."
*/
select
  hour as at,
  case group_id when :group_id then 'this group' else 'other groups, maximum' end as series,
  max(lag_seconds_max) as value
from metrics.consumer_group_hourly
where hour > :hour - interval '7 days' and hour <= :hour
and cluster = :cluster and lag_seconds_max is not null
group by at, series
order by at, series

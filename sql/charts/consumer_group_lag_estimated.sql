/*
title: Consumer lag by CloudWatch
unit: records
kind: lines
why: "Last 48 hours: records of lag at the end of each hour (SumOffsetLag), by topic. A line that rises from hour to hour is a group that reads less than arrives."
*/
select
  h.hour as at,
  h.topic as series,
  h.sum_offset_lag_last as value
from metrics.msk_consumer_lag_hourly as h
where h.cluster = :cluster and h.group_id = :group_id and h.sum_offset_lag_last is not null
and h.hour > :hour - interval '48 hours' and h.hour <= :hour
order by at, series

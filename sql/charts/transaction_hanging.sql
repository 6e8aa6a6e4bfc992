/*
title: Last stable offset and log-end offset
unit: records
kind: lines
why: "The partition with the most waiting records, relative to the first hour shown. A hanging transaction holds the flat line."
*/
with worst as (
  select partition
  from metrics.partition_hourly
  where hour = :hour and cluster = :cluster and topic = :topic
  order by log_end_offset - last_stable_offset desc nulls last, partition asc
  limit 1
),

seen as (
  select
    p.hour,
    p.log_end_offset,
    p.last_stable_offset,
    min(p.last_stable_offset) over () as least
  from metrics.partition_hourly as p
  inner join worst on p.partition = worst.partition
  where p.cluster = :cluster and p.topic = :topic
  and p.hour > :hour - interval '24 hours' and p.hour <= :hour
)

select
  seen.hour as at,
  line.series,
  line.value
from seen
cross join lateral (
  values
  ('log-end offset', seen.log_end_offset - seen.least),
  ('last stable offset', seen.last_stable_offset - seen.least)
) as line (series, value)
order by at, series

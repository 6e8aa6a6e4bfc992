/*
title: Committed offset between log start and log end
unit: records
kind: lines
why: "The partition closest to retention, counted from the first hour shown: below the dashed line records are deleted."
*/
with worst as (
  select
    c.topic,
    c.partition
  from metrics.consumer_partition_hourly as c
  inner join metrics.partition_hourly as p using (hour, cluster, topic, partition)
  where c.hour = :hour and c.cluster = :cluster and c.group_id = :group_id and c.lag_records > 0
  order by
    (c.committed_offset - p.log_start_offset) / nullif(cast(p.log_end_offset - p.log_start_offset as double precision), 0)
    asc nulls last,
    c.topic asc,
    c.partition asc
  limit 1
),

seen as (
  select
    p.hour,
    c.topic || '-' || c.partition as place,
    c.committed_offset,
    p.log_start_offset,
    p.log_end_offset,
    -- The committed offset of a group that lost records lies before log start.
    min(least(p.log_start_offset, c.committed_offset)) over () as first_offset
  from worst
  inner join metrics.consumer_partition_hourly as c on worst.topic = c.topic and worst.partition = c.partition
  inner join metrics.partition_hourly as p
    on c.hour = p.hour and c.cluster = p.cluster and c.topic = p.topic and c.partition = p.partition
  where c.cluster = :cluster and c.group_id = :group_id
  and c.hour > :hour - interval '48 hours' and c.hour <= :hour
)

select
  seen.hour as at,
  line.series,
  line.value
from seen
cross join lateral (
  values
  ('limit log start offset', seen.log_start_offset - seen.first_offset),
  ('committed on ' || seen.place, seen.committed_offset - seen.first_offset),
  ('log-end offset', seen.log_end_offset - seen.first_offset)
) as line (series, value)
order by at, series

/*
title: Incoming records and consumer capacity
unit: records/s
kind: lines
why: "Two weeks by hour, with the group's capacity as evaluated now. Peaks at or above that line leave a backlog."
*/
with evaluated as (
  select
    cast(metrics ->> 'capacity_records_per_second' as double precision) as capacity,
    cast(metrics ->> 'thread_records_per_second' as double precision) as thread
  from detect.evaluation
  where detector = 'topic_underpartitioned' and hour = :hour
  and resource = public.resource_key('reading', :cluster, :topic, :group_id)
)

select
  t.hour as at,
  line.series,
  line.value
from metrics.topic_hourly as t
cross join evaluated
cross join lateral (
  values
  ('records', t.messages_in / nullif(t.covered_seconds, 0)),
  ('limit capacity', evaluated.capacity),
  ('one thread', evaluated.thread)
) as line (series, value)
where t.cluster = :cluster and t.topic = :topic
and t.hour > :hour - interval '14 days' and t.hour <= :hour
order by at, series

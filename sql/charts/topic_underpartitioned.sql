/*
title: Records that come in, and what the readers can take
unit: records/s
kind: lines
why: "By the hour of two weeks, against what the group's threads can take as judged now: peaks at or above that line leave a backlog."
*/
with able as (
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
cross join able
cross join lateral (
  values
  ('records', t.messages_in / nullif(t.covered_seconds, 0)),
  ('limit capacity', able.capacity),
  ('one thread', able.thread)
) as line (series, value)
where t.cluster = :cluster and t.topic = :topic
and t.hour > :hour - interval '14 days' and t.hour <= :hour
order by at, series

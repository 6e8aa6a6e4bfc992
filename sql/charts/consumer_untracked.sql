/*
title: Bytes out of the group's topics and bytes covered by commits
unit: bytes/s
kind: lines
why: "The difference between the lines is read by consumers that do not commit offsets."
*/
with topic as (
  select distinct a.topic
  from inventory.consumer_member_hourly as m
  cross join lateral jsonb_object_keys(m.assignment) as a (topic)
  where m.hour = :hour and m.cluster = :cluster and m.group_id = :group_id
  and not exists (
    select 1 from metrics.consumer_partition_hourly as p
    where p.hour = m.hour and p.cluster = m.cluster and p.group_id = m.group_id and p.topic = a.topic
  )
),

seen as (
  select
    t.hour,
    sum(t.bytes_out / nullif(t.covered_seconds, 0)) as sent,
    sum(r.bytes / nullif(t.covered_seconds, 0)) as accounted
  from topic
  inner join metrics.topic_hourly as t on topic.topic = t.topic
  cross join lateral (
    select coalesce(sum(r.fresh_bytes + coalesce(r.backlog_bytes, 0)), 0) as bytes
    from public.topic_readers as r
    where r.hour = t.hour and r.cluster = t.cluster and r.topic = t.topic
  ) as r
  where t.cluster = :cluster
  and t.hour > :hour - interval '12 hours' and t.hour <= :hour
  group by t.hour
)

select
  seen.hour as at,
  line.series,
  line.value
from seen
cross join lateral (
  values ('bytes out', seen.sent), ('covered by commits', seen.accounted)
) as line (series, value)
order by at, series

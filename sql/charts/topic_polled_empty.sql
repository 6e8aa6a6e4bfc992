/*
title: Partition fetches and records of the topic
unit: 1/s
kind: lines
why: "A consumer that waits for records fetches twice per second, or once per record."
*/
select
  t.hour as at,
  line.series,
  line.value
from metrics.topic_hourly as t
left join inventory.topic_hourly as i using (hour, cluster, topic)
cross join lateral (
  values
  ('fetches per partition', t.fetch_requests / nullif(t.covered_seconds, 0) / coalesce(i.partitions, 1)),
  ('records', t.messages_in / nullif(t.covered_seconds, 0))
) as line (series, value)
where t.cluster = :cluster and t.topic = :topic
and t.hour > :hour - interval '24 hours' and t.hour <= :hour
order by at, series

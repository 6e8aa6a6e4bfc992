/*
title: Mean message size, this week and the week before
unit: bytes
kind: lines
why: "Two weeks. A step away from the line of the week before is a change of the messages; a cycle that both lines share is not."
*/
select
  line.at,
  line.series,
  t.bytes_in / t.messages_in as value
from metrics.topic_hourly as t
cross join lateral (
  values ('bytes per message', t.hour), ('one week before', t.hour + interval '7 days')
) as line (series, at)
where t.hour > :hour - interval '21 days' and t.hour <= :hour
and line.at > :hour - interval '14 days' and line.at <= :hour
and t.cluster = :cluster and t.topic = :topic and t.messages_in > 0 and t.bytes_in is not null
order by line.at, line.series

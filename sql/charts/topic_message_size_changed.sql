/*
title: Bytes per message against a week earlier
unit: bytes
kind: lines
why: "Over two weeks: a step away from the line of a week earlier is a change of the messages, a rhythm that both share is none."
*/
select
  line.at,
  line.series,
  t.bytes_in / t.messages_in as value
from metrics.topic_hourly as t
cross join lateral (
  values ('bytes per message', t.hour), ('a week earlier', t.hour + interval '7 days')
) as line (series, at)
where t.hour > :hour - interval '21 days' and t.hour <= :hour
and line.at > :hour - interval '14 days' and line.at <= :hour
and t.cluster = :cluster and t.topic = :topic and t.messages_in > 0 and t.bytes_in is not null
order by line.at, line.series

/*
title: Log size of unused topics
unit: bytes
kind: stacked
why: "The largest unused topics, all replicas. The finding lists how long each has been unused."
*/
select
  one.topic as label,
  'log' as series,
  one.bytes as value
from detect.evaluation as e
cross join lateral jsonb_to_recordset(cast(e.metrics -> 'topics' as jsonb)) as one (topic text, bytes double precision)
where e.hour = :hour and e.detector = 'topic_abandoned'
and e.identity ->> 'cluster' = :cluster and json_typeof(e.metrics -> 'topics') = 'array'
order by one.bytes desc nulls last, one.topic asc

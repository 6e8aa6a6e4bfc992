/*
title: Topics that nobody writes or reads
unit: bytes
kind: stacked
why: "The largest of them, all replicas: what their logs take, and since when nobody wrote or read them stands in the finding."
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

/*
title: Bytes beyond the needed retention, by topic
unit: bytes
kind: stacked
why: "The topics that the finding lists, all replicas: records older than any consumer group needed."
*/
select
  one.topic as label,
  'beyond needed retention' as series,
  one.saved_bytes as value
from detect.evaluation as e
cross join lateral jsonb_to_recordset(cast(e.metrics -> 'worst_topics' as jsonb))
  as one (topic text, saved_bytes double precision)
where e.hour = :hour and e.detector = 'topic_retention_wasteful'
and e.identity ->> 'cluster' = :cluster and json_typeof(e.metrics -> 'worst_topics') = 'array'
order by one.saved_bytes desc, one.topic asc

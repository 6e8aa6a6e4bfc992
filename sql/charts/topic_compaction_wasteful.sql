/*
title: Reclaimable bytes by changelog
unit: bytes
kind: stacked
why: "The topics that the finding lists, all replicas: bytes that the recommended settings would free."
*/
select
  one.topic as label,
  'reclaimable' as series,
  one.saved_bytes as value
from detect.evaluation as e
cross join lateral jsonb_to_recordset(cast(e.metrics -> 'worst_topics' as jsonb))
  as one (topic text, saved_bytes double precision)
where e.hour = :hour and e.detector = 'topic_compaction_wasteful'
and e.identity ->> 'cluster' = :cluster and json_typeof(e.metrics -> 'worst_topics') = 'array'
order by one.saved_bytes desc, one.topic asc

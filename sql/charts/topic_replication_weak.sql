/*
title: Bytes with unsafe replication settings, by owner
unit: bytes
kind: stacked
why: "The topics that the finding lists, by owner and weakness."
*/
select
  coalesce(one.owner, 'unassigned') as label,
  one.weakness as series,
  sum(one.bytes) as value
from detect.evaluation as e
cross join lateral jsonb_to_recordset(cast(e.metrics -> 'weak_topics' as jsonb))
  as one (owner text, weakness text, bytes double precision)
where e.hour = :hour and e.detector = 'topic_replication_weak'
and e.identity ->> 'cluster' = :cluster and json_typeof(e.metrics -> 'weak_topics') = 'array'
group by coalesce(one.owner, 'unassigned'), one.weakness
having sum(one.bytes) > 0
order by value desc

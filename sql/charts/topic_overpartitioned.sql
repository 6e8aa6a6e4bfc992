/*
title: Needed and unneeded partitions by topic
unit: partitions
kind: stacked
why: "The topics that the finding lists: partitions that their traffic needs, and the rest."
*/
select
  one.topic as label,
  part.series,
  part.value
from detect.evaluation as e
cross join lateral jsonb_to_recordset(cast(e.metrics -> 'worst_topics' as jsonb))
  as one (topic text, partitions double precision, needed_partitions double precision)
cross join lateral (
  values ('needed', one.needed_partitions), ('not needed', one.partitions - one.needed_partitions)
) as part (series, value)
where e.hour = :hour and e.detector = 'topic_overpartitioned'
and e.identity ->> 'cluster' = :cluster and json_typeof(e.metrics -> 'worst_topics') = 'array'
order by one.partitions desc, one.topic asc, part.series desc

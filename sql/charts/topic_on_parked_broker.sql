/*
title: Active topics on parked brokers
unit: bytes
kind: stacked
why: "Size by topic and parked broker: these replicas are lost when the broker is stopped."
*/
select
  r.topic as label,
  'broker ' || r.broker_id as series,
  cast(sum(r.size_bytes) as double precision) as value
from detect.evaluation as e
cross join lateral jsonb_to_recordset(cast(e.metrics -> 'worst_topics' as jsonb)) as misplaced (topic text)
inner join metrics.replica_sample as r
  on e.hour = r.hour and e.identity ->> 'cluster' = r.cluster and misplaced.topic = r.topic
  and cast(r.broker_id as text) = any(string_to_array(e.metrics ->> 'parked_broker_ids', ', '))
where e.hour = :hour and e.detector = 'topic_on_parked_broker'
and e.identity ->> 'cluster' = :cluster and json_typeof(e.metrics -> 'worst_topics') = 'array'
group by r.topic, r.broker_id
order by value desc

-- Internal topics of an application, largest first, with the newest evaluation of their use.
select
  t.cluster,
  t.topic,
  t.kind,
  t.partitions,
  t.replication_factor,
  held.log_bytes,
  e.reason,
  e.message
from (
  select max(hour) as hour from detect.detector_run
  where detector = 'changelog_abandoned' and status = 'evaluated'
) as newest
inner join inventory.topic_hourly as t
  on newest.hour = t.hour and t.application_id = :application_id and t.kind <> 'plain'
left join detect.evaluation as e
  on newest.hour = e.hour and e.detector = 'changelog_abandoned'
  and e.identity ->> 'cluster' = t.cluster and e.identity ->> 'application_id' = t.application_id
left join lateral (
  select cast(sum(r.size_bytes) as double precision) as log_bytes
  from metrics.replica_sample as r
  where r.hour = t.hour and r.cluster = t.cluster and r.topic = t.topic
) as held on true
where cast(:cluster as text) is null or t.cluster = :cluster
order by t.cluster asc, held.log_bytes desc nulls last, t.topic asc

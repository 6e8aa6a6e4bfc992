/*
title: Restore time of each store if the host fails
unit: seconds
kind: stacked
why: "Stores of the host with the longest restore: the application waits for stores without a standby."
*/
select
  one.store as label,
  case when one.has_standby then 'has a standby' else 'no standby' end as series,
  one.failover_seconds as value
from detect.evaluation as e
cross join lateral jsonb_to_recordset(cast(e.metrics -> 'slowest_stores' as jsonb))
  as one (store text, failover_seconds double precision, has_standby boolean)
where e.hour = :hour and e.detector = 'state_store_restore_slow'
and e.identity ->> 'cluster' = :cluster and e.identity ->> 'application_id' = :application_id
and json_typeof(e.metrics -> 'slowest_stores') = 'array' and one.failover_seconds is not null
order by one.failover_seconds desc, one.store asc

/*
title: Restore of each store if that machine dies
unit: seconds
kind: stacked
why: "Of the stores of the machine whose death costs most: what has no standby is what the application waits for."
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

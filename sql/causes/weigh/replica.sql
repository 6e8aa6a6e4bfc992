-- Replicas as each broker of the affected clusters listed them last. A broker with no list in the hour gave no response.
select
  r.cluster,
  r.topic,
  r.broker_id,
  r.partition_bytes,
  r.partition_lags,
  r.hour < :hour as is_silent
from metrics.replica_sample as r
inner join (
  select
    cluster,
    broker_id,
    max(hour) as hour
  from metrics.replica_sample
  where
    hour > :hour - :replica_lookback_hours * interval '1 hour' and hour <= :hour
    and (cluster in (select m.cluster from missing_replica as m) or cluster in (select f.cluster from follower as f))
  group by cluster, broker_id
) as newest using (cluster, broker_id, hour)
where not r.is_future

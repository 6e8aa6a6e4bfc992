-- A consumer group, hour by hour: metrics, and the hosts of its members and rebalances that changes are found by.
select
  h.hour,
  m.lag_records,
  m.lag_seconds_max,
  m.rebalances,
  m.records_consumed,
  m.members,
  m.topics,
  m.partitions,
  m.lag_records_max,
  m.lag_unknown_partitions,
  m.commits,
  m.worst_topic,
  m.worst_partition,
  jsonb_build_object('hosts', g.hosts, 'rebalances', m.rebalances) as state
from generate_series(cast(:start as timestamptz), cast(:finish as timestamptz), interval '1 hour') as h (hour)
left join lateral (
  select * from metrics.consumer_group_hourly as m
  where
    m.hour = h.hour
    and m.cluster = :cluster
    and m.group_id = :group_id
) as m on true
left join lateral (
  select jsonb_agg(distinct ltrim(g.host, '/') order by ltrim(g.host, '/')) as hosts
  from inventory.consumer_member_hourly as g
  where g.hour = h.hour and g.cluster = :cluster and g.group_id = :group_id
) as g on true
order by h.hour

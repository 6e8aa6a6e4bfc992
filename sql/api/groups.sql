-- Consumer groups of a cluster in the newest gathered hour, by name, after a group.
select
  g.cluster,
  g.group_id,
  g.state,
  g.status,
  g.members,
  g.topics,
  g.partitions,
  g.lag_records,
  g.lag_seconds_max,
  g.lag_unknown_partitions,
  g.records_consumed,
  g.commits,
  g.rebalances,
  g.worst_topic,
  g.worst_partition,
  g.hour
from metrics.consumer_group_hourly as g
where
  g.hour = (select max(n.hour) from metrics.consumer_group_hourly as n)
  and g.cluster = cast(:cluster as text)
  and (cast(:group_id as text) is null or g.group_id > cast(:group_id as text))
  and (cast(:single_id as text) is null or g.group_id = cast(:single_id as text))
order by g.group_id
limit cast(:most as integer)

-- Consumer groups in the newest gathered hour: lag in records and in time, worst first.
create or replace view public.consumer_lag as
with newest as (
  select max(hour) as hour from metrics.consumer_group_hourly
),

alone as materialized (
  select a.*
  from newest as n
  cross join lateral public.commits_without_members(n.hour) as a
)

select
  g.cluster,  -- Kafka cluster
  g.group_id,  -- Group
  status,  -- ok, warn, stop, stall or rewind; null: unknown
  lag_records,  -- Sum over the partitions with known lag
  lag_seconds_max,  -- Age of the oldest unread record, maximum of the partitions
  worst_topic,  -- Topic of the worst partition
  worst_partition,  -- Partition with the worst status
  records_consumed,  -- Records consumed in the hour
  commits,  -- Commits in the hour; null: __consumer_offsets could not be read
  rebalances,  -- Rebalances in the hour; null: __consumer_offsets could not be read
  members,  -- Members when it was described
  a.is_committing as commits_without_members,  -- Whether it commits without members, as Flink jobs do; null: it has members, or no commits
  state,  -- State when it was described
  lag_unknown_partitions,  -- Partitions with commits and unknown lag
  hour  -- Start of the hour (UTC)
from metrics.consumer_group_hourly as g
left join alone as a using (cluster, group_id)
where g.hour = (select hour from newest)
order by lag_seconds_max desc nulls last, lag_records desc nulls last, group_id asc;

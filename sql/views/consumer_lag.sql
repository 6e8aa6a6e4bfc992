-- Consumer groups in the newest gathered hour: lag in records and in time, the worst first.
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
  status,  -- ok, warn, stop, stall or rewind; null: can't be said
  lag_records,  -- Records behind, all partitions whose lag is known
  lag_seconds_max,  -- Age of the oldest unread record, worst partition
  worst_topic,  -- Topic of the worst partition
  worst_partition,  -- The worst partition
  records_consumed,  -- Records consumed in the hour
  commits,  -- Commits in the hour; null: history couldn't be read
  rebalances,  -- Rebalances in the hour; null: history couldn't be read
  members,  -- Members when it was asked
  a.is_committing as commits_without_members,  -- Whether it commits and has none, as Flink's do; null: none of these
  state,  -- State when it was asked
  lag_unknown_partitions,  -- Partitions whose lag isn't known
  hour  -- The hour (UTC)
from metrics.consumer_group_hourly as g
left join alone as a using (cluster, group_id)
where g.hour = (select hour from newest)
order by lag_seconds_max desc nulls last, lag_records desc nulls last, group_id asc;

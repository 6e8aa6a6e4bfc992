-- Lag of consumer groups by topic in the newest gathered hour: the pairs that are furthest behind, and the number of all pairs.
-- Null: unknown for every partition.
select
  p.cluster,
  p.group_id,
  p.topic,
  sum(p.lag_records)::double precision as lag_records,
  max(p.lag_seconds) as lag_seconds,
  count(*) over () as pairs
from metrics.consumer_partition_hourly as p
where p.hour = (select max(n.hour) from metrics.consumer_group_hourly as n)
group by p.cluster, p.group_id, p.topic
order by lag_seconds desc nulls last, lag_records desc nulls last, p.cluster asc, p.group_id asc, p.topic asc
limit cast(:most as integer)

-- Consumer groups that are furthest behind in the newest gathered hour.
select
  l.cluster,
  l.group_id as consumer_group,
  l.lag_seconds_max as lag_seconds,
  l.lag_records,
  l.status,
  l.worst_topic,
  l.members
from public.consumer_lag as l
order by l.lag_seconds_max desc nulls last, l.lag_records desc nulls last, l.cluster asc, l.group_id asc
limit 20

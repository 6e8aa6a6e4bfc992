/*
title: Under-replicated partitions
unit: partitions
kind: lines
why: "Last 7 days, of partitions with a replica on this broker and of those it leads. A short peak is a restart, a plateau a broker that is down."
*/
select
  b.hour as at,
  line.series,
  line.value
from metrics.broker_hourly as b
cross join lateral (
  values
  ('led by this broker', b.under_replicated_partitions),
  ('led by this broker, below min.insync.replicas', b.under_min_isr_partitions)
) as line (series, value)
where
  b.cluster = :cluster and coalesce(b.broker_id::text, b.endpoint) = :broker_id
  and b.hour > :hour - interval '7 days' and b.hour <= :hour
  and line.value is not null
union all
select
  p.hour,
  'replica on this broker out of sync',
  count(m.broker_id)
from metrics.partition_hourly as p
left join lateral jsonb_array_elements_text(p.missing_brokers) as m (broker_id) on m.broker_id = :broker_id
where
  p.cluster = :cluster
  and p.hour > :hour - interval '7 days' and p.hour <= :hour
group by p.hour
order by at asc, series desc

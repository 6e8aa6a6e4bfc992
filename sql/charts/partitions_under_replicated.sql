/*
title: Partitions that lack replicas
unit: partitions
kind: lines
why: "Over a week, of those whose replica on this broker is missing, and of those that it leads: a peak that falls is a restart, a plateau a broker that is gone."
*/
select
  b.hour as at,
  line.series,
  line.value
from metrics.broker_hourly as b
cross join lateral (
  values
  ('led by it', b.under_replicated_partitions),
  ('led by it, below min.insync', b.under_min_isr_partitions)
) as line (series, value)
where
  b.cluster = :cluster and coalesce(b.broker_id::text, b.endpoint) = :broker_id
  and b.hour > :hour - interval '7 days' and b.hour <= :hour
  and line.value is not null
union all
select
  p.hour,
  'whose replica here is missing',
  count(m.broker_id)
from metrics.partition_hourly as p
left join lateral jsonb_array_elements_text(p.missing_brokers) as m (broker_id) on m.broker_id = :broker_id
where
  p.cluster = :cluster
  and p.hour > :hour - interval '7 days' and p.hour <= :hour
group by p.hour
order by at asc, series desc

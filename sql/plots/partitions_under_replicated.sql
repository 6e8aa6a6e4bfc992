/*
title: Partitions that lack replicas
unit: partitions
kind: lines
why: "Over a week, of those that this broker leads: a peak that falls is a restart, a plateau a broker that is gone."
*/
select
  b.hour as at,
  line.series,
  line.value
from metrics.broker_hourly as b
cross join lateral (
  values
  ('under-replicated', b.under_replicated_partitions),
  ('below min.insync.replicas', b.under_min_isr_partitions)
) as line (series, value)
where
  b.cluster = :cluster and coalesce(b.broker_id::text, b.endpoint) = :broker_id
  and b.hour > cast(:hour as timestamptz) - interval '7 days' and b.hour <= cast(:hour as timestamptz)
  and line.value is not null
order by at asc, series desc

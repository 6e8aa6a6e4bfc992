/*
title: Partitions per broker
unit: partitions
kind: stacked
why: "The twelve brokers with the most partitions: if only a few hold too many, a reassignment is enough."
*/
with broker as (
  select
    coalesce(broker_id::text, endpoint) as broker_id,
    partitions,
    leaders
  from metrics.broker_hourly
  where hour = :hour and cluster = :cluster and partitions is not null
  order by partitions desc, broker_id asc
  limit 12
)

select
  'broker ' || b.broker_id as label,
  part.series,
  part.value
from broker as b
left join detect.detector_run as j on j.hour = :hour and j.detector = 'broker_partitions_too_many'
cross join lateral (
  values
  ('leaders', b.leaders),
  ('followers', b.partitions - b.leaders),
  ('limit Too many partitions', (j.params ->> 'many')::double precision)
) as part (series, value)
where part.value is not null
order by b.partitions desc, b.broker_id asc, part.series desc

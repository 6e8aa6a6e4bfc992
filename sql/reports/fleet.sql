-- The fleet in figures, each from the newest hour of the period that has any. A table without rows is not known, not 0.
with thing as (
  select 1 as place, 'EBS volumes' as label, v.hour, count(*)::double precision as count
  from inventory.volume_hourly as v
  where v.hour >= cast(:start as timestamptz) and v.hour < cast(:finish as timestamptz) group by v.hour
  union all
  select 2, 'EC2 instances', i.hour, count(*)
  from inventory.instance_hourly as i
  where i.hour >= cast(:start as timestamptz) and i.hour < cast(:finish as timestamptz) group by i.hour
  union all
  select 3, 'Brokers', b.hour, count(*)
  from metrics.broker_hourly as b
  where b.hour >= cast(:start as timestamptz) and b.hour < cast(:finish as timestamptz) group by b.hour
  union all
  select 4, 'Topics', t.hour, count(*)
  from inventory.topic_hourly as t
  where t.hour >= cast(:start as timestamptz) and t.hour < cast(:finish as timestamptz) group by t.hour
  union all
  select 5, 'Partitions', t.hour, sum(t.partitions)
  from inventory.topic_hourly as t
  where t.hour >= cast(:start as timestamptz) and t.hour < cast(:finish as timestamptz) group by t.hour
  union all
  select 6, 'Consumer groups', g.hour, count(*)
  from inventory.consumer_group_hourly as g
  where g.hour >= cast(:start as timestamptz) and g.hour < cast(:finish as timestamptz) group by g.hour
  union all
  select 7, 'Applications', a.hour, count(distinct(a.cluster, a.app))
  from metrics.jvm_app_hourly as a
  where a.hour >= cast(:start as timestamptz) and a.hour < cast(:finish as timestamptz) group by a.hour
  union all
  select 8, 'State stores', s.hour, count(*)
  from metrics.state_store_hourly as s
  where s.hour >= cast(:start as timestamptz) and s.hour < cast(:finish as timestamptz) group by s.hour
)

select distinct on (place) place, label, count, hour
from thing
order by place asc, hour desc

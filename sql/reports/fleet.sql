-- The fleet in numbers, each from the newest hour of the period with data. A table without rows is unknown, not 0.
with newest as (
  select
    (
      select max(t.hour) from inventory.volume_hourly as t
      where t.hour >= cast(:start as timestamptz) and t.hour < cast(:finish as timestamptz)
    ) as volume_hour,
    (
      select max(t.hour) from inventory.instance_hourly as t
      where t.hour >= cast(:start as timestamptz) and t.hour < cast(:finish as timestamptz)
    ) as instance_hour,
    (
      select max(t.hour) from metrics.broker_hourly as t
      where t.hour >= cast(:start as timestamptz) and t.hour < cast(:finish as timestamptz)
    ) as broker_hour,
    (
      select max(t.hour) from inventory.topic_hourly as t
      where t.hour >= cast(:start as timestamptz) and t.hour < cast(:finish as timestamptz)
    ) as topic_hour,
    (
      select max(t.hour) from inventory.consumer_group_hourly as t
      where t.hour >= cast(:start as timestamptz) and t.hour < cast(:finish as timestamptz)
    ) as consumer_group_hour,
    (
      select max(t.hour) from metrics.jvm_app_hourly as t
      where t.hour >= cast(:start as timestamptz) and t.hour < cast(:finish as timestamptz)
    ) as jvm_app_hour,
    (
      select max(t.hour) from metrics.state_store_hourly as t
      where t.hour >= cast(:start as timestamptz) and t.hour < cast(:finish as timestamptz)
    ) as state_store_hour
)

select 1 as place, 'EBS volumes' as label, count(*)::double precision as count, t.hour
from inventory.volume_hourly as t
where t.hour = (select volume_hour from newest)
group by t.hour
union all
select 2, 'EC2 instances', count(*), t.hour
from inventory.instance_hourly as t
where t.hour = (select instance_hour from newest)
group by t.hour
union all
select 3, 'Brokers', count(*), t.hour
from metrics.broker_hourly as t
where t.hour = (select broker_hour from newest)
group by t.hour
union all
select 4, 'Topics', count(*), t.hour
from inventory.topic_hourly as t
where t.hour = (select topic_hour from newest)
group by t.hour
union all
select 5, 'Partitions', sum(t.partitions), t.hour
from inventory.topic_hourly as t
where t.hour = (select topic_hour from newest)
group by t.hour
union all
select 6, 'Consumer groups', count(*), t.hour
from inventory.consumer_group_hourly as t
where t.hour = (select consumer_group_hour from newest)
group by t.hour
union all
select 7, 'Applications', count(distinct(t.cluster, t.app)), t.hour
from metrics.jvm_app_hourly as t
where t.hour = (select jvm_app_hour from newest)
group by t.hour
union all
select 8, 'State stores', count(*), t.hour
from metrics.state_store_hourly as t
where t.hour = (select state_store_hour from newest)
group by t.hour
order by place

-- Applications of a cluster with JMX metrics in a time range.
select distinct a.app
from metrics.jvm_app_hourly as a
where
  a.cluster = :cluster and a.hour >= cast(:start as timestamptz) and a.hour < cast(:finish as timestamptz)
order by a.app

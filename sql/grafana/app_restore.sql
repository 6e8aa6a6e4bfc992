-- Records that the tasks of each process of an application have yet to restore.
select
  a.hour as time,
  a.endpoint as metric,
  a.records_to_restore as value
from metrics.jvm_app_hourly as a
where
  a.cluster = :cluster and a.app = :application
  and a.hour >= cast(:start as timestamptz) and a.hour < cast(:finish as timestamptz)
order by a.hour, a.endpoint

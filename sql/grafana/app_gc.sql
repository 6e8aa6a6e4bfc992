-- Share of time in garbage collection, of each process of an application.
select
  a.hour as time,
  a.endpoint as metric,
  a.gc_seconds / nullif(a.covered_seconds, 0) as value
from metrics.jvm_app_hourly as a
where
  a.cluster = :cluster and a.app = :application
  and a.hour >= cast(:start as timestamptz) and a.hour < cast(:finish as timestamptz)
order by a.hour, a.endpoint

-- CPU of each process of an application as a share of the host's CPU.
select
  a.hour as time,
  a.endpoint as metric,
  a.cpu_ratio as value
from metrics.jvm_app_hourly as a
where
  a.cluster = :cluster and a.app = :application
  and a.hour >= cast(:start as timestamptz) and a.hour < cast(:finish as timestamptz)
order by a.hour, a.endpoint

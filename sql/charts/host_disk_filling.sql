/*
title: Used space of the file system and its size
unit: bytes
kind: lines
why: "Last 7 days, with all state stores of the host. Compactions cause a sawtooth; a ramp without drops fills the disk."
*/
with finding as (
  select e.metrics ->> 'mountpoint' as mountpoint
  from detect.evaluation as e
  where e.hour = :hour and e.detector = 'host_disk_filling'
  and e.identity ->> 'cluster' = :cluster and e.identity ->> 'endpoint' = :endpoint
)

select
  f.hour as at,
  line.series,
  line.value
from finding as s
inner join metrics.file_system_hourly as f
  on f.hour > :hour - interval '7 days' and f.hour <= :hour
  and f.cluster = :cluster and f.endpoint = :endpoint and s.mountpoint = f.mountpoint
cross join lateral (
  values (f.mountpoint, f.size_bytes - f.available_bytes), ('limit size of ' || f.mountpoint, f.size_bytes)
) as line (series, value)
where line.value is not null

union all
select
  m.hour,
  'state stores of the host',
  sum(m.sst_bytes)
from metrics.node_hourly as n
inner join metrics.jvm_app_hourly as p on n.instance_id = p.instance_id
inner join metrics.state_store_memory_hourly as m
  on p.hour = m.hour and p.cluster = m.cluster and p.app = m.app and p.endpoint = m.endpoint
where n.hour = :hour and n.cluster = :cluster and n.endpoint = :endpoint
and p.hour > :hour - interval '7 days' and p.hour <= :hour
and m.hour > :hour - interval '7 days' and m.hour <= :hour
group by m.hour
having count(m.sst_bytes) = count(*)
order by at, series

/*
title: Store size, two weeks
unit: bytes
kind: lines
why: "Total size of its RocksDB files over all tasks and processes: a line that never falls is unbounded growth."
*/
select
  m.hour as at,
  m.store as series,
  sum(m.sst_bytes) as value
from metrics.state_store_memory_hourly as m
inner join metrics.jvm_app_hourly as p using (hour, cluster, app, endpoint)
where m.hour > :hour - interval '14 days' and m.hour <= :hour
and m.cluster = :cluster and p.application_id || '-' || m.store || '-changelog' = :topic
group by m.hour, m.store
having count(m.sst_bytes) = count(*)
order by m.hour

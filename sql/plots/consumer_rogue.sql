/*
title: Disk reads of the brokers' volumes against their baseline
unit: bytes/s
kind: lines
why: "Reads stay near the dashed baseline while consumers are served from memory; what stands out was read from the disk."
*/
with broker_volume as (
  select distinct
    v.account,
    v.region,
    v.volume_id,
    m.read_baseline_bytes_per_second as baseline
  from metrics.broker_hourly as b
  inner join inventory.volume_hourly as v on b.hour = v.hour and b.instance_id = v.instance_id
  left join metrics.volume_hourly as m
    on v.hour = m.hour and v.account = m.account and v.region = m.region and v.volume_id = m.volume_id
  where b.hour = cast(:hour as timestamptz) and b.cluster = :cluster
),

minute as (
  select
    s.at,
    v.volume_id,
    v.baseline,
    s.read_bytes / s.period_seconds as rate
  from broker_volume as v
  inner join metrics.volume_sample as s
    on v.account = s.account and v.region = s.region and v.volume_id = s.volume_id
  where s.at >= cast(:hour as timestamptz) and s.at < cast(:hour as timestamptz) + interval '1 hour'
  and s.read_bytes is not null
)

select
  at,
  volume_id as series,
  rate as value
from minute
union all
select
  at,
  format('limit usual for %s', volume_id) as series,
  baseline as value
from minute
where baseline is not null
order by at, series

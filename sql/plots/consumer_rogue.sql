/*
title: Disk reads of the brokers' volumes against their baseline
unit: bytes/s
kind: lines
why: "Reads stay near the dashed baseline while consumers are served from memory; what stands out was read from disk."
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
  minute.at,
  minute.volume_id as series,
  minute.rate as value
from minute
-- More lines than this can't be told apart.
inner join (select volume_id from minute group by volume_id order by max(rate) desc, volume_id asc limit 4) as loudest
  on minute.volume_id = loudest.volume_id
union all
select
  at,
  'all volumes together' as series,
  sum(rate) as value
from minute
group by at
having count(*) > 1
union all
select
  at,
  'limit usual for all together' as series,
  sum(baseline) as value
from minute
where baseline is not null
group by at
order by at, series

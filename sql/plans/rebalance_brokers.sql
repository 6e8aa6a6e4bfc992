-- Brokers of a cluster for a reassignment plan: their load, rack, free space, whether they may get replicas, and the
-- bandwidth available for copying: disk at the 95th and network at the 99th percentile of the newest hour, with 30 % of the
-- limit kept free.
with newest as (
  select max(hour) as hour from metrics.broker_hourly
  where cluster = :cluster and hour > (select max(hour) from metrics.broker_hourly) - interval '24 hours'
),

parked as (
  select params ->> 'parked_brokers' as pattern from detect.detector_run
  where detector = 'topic_on_parked_broker' and status = 'evaluated'
  order by hour desc
  limit 1
),

disk as (
  select
    broker_id,
    sum(total_bytes) as total_bytes,
    sum(usable_bytes) as usable_bytes
  from newest
  inner join metrics.log_dir_hourly using (hour)
  where cluster = :cluster
  group by broker_id
)

select
  b.hour,
  b.broker_id,
  r.rack,
  case when bool_and(i.vcpus is not null) over () then i.vcpus else 1 end as weight,
  cast(d.total_bytes as double precision) as total_bytes,
  cast(d.usable_bytes as double precision) as usable_bytes,
  case
    when b.samples is null then 'silent'
    when p.pattern <> '' and b.cluster || '/' || b.broker_id ~ p.pattern then 'parked'
    when exists (
      select from detect.evaluation as e
      where e.hour = b.hour and e.detector = 'disk_filling' and e.status = 'firing'
        and e.identity ->> 'cluster' = b.cluster and e.identity ->> 'broker_id' = cast(b.broker_id as text)
    ) then 'filling'
  end as barred_because,
  case when v.limit_bytes_per_second is not null
    then least(i.ebs_baseline_bytes_per_second, v.limit_bytes_per_second) * 0.7 - v.used_bytes_per_second end
    as spare_disk_bytes_per_second,
  w.spare_in_bytes_per_second,
  w.spare_out_bytes_per_second,
  b.bytes_in_per_second,
  b.bytes_out_per_second
from newest as n
inner join metrics.broker_hourly as b on n.hour = b.hour
left join inventory.instance_hourly as i on b.hour = i.hour and b.instance_id = i.instance_id
left join inventory.broker_hourly as r on b.hour = r.hour and b.cluster = r.cluster and b.broker_id = r.broker_id
left join disk as d on b.broker_id = d.broker_id
left join parked as p on true
-- The volume with the highest load: it holds the logs.
left join lateral (
  select
    m.baseline_bytes_per_second as limit_bytes_per_second,
    m.bytes_per_second_p95 as used_bytes_per_second
  from inventory.used_volumes(b.hour) as a
  inner join metrics.volume_hourly as m
    on b.hour = m.hour and a.account = m.account and a.region = m.region and a.volume_id = m.volume_id
  where a.cluster = b.cluster and a.endpoint = b.endpoint
  order by m.bytes_per_second_p95 desc nulls first, a.volume_id asc
  limit 1
) as v on true
left join lateral (
  select
    min(s.spare_bytes_per_second) filter (where s.direction = 'in') as spare_in_bytes_per_second,
    min(s.spare_bytes_per_second) filter (where s.direction = 'out') as spare_out_bytes_per_second
  from (
    select
      n.direction,
      n.baseline_bytes_per_second * 0.7 - n.bytes_per_second_p99 as spare_bytes_per_second
    from metrics.instance_network_hourly as n
    where n.hour = b.hour and n.account = i.account and n.region = i.region and n.instance_id = i.instance_id
  ) as s
) as w on true
where b.cluster = :cluster and b.broker_id is not null
-- Dedicated controllers hold no partitions.
and (b.active_controllers is null or b.partitions is not null)
order by b.broker_id asc

-- For each instance its most throttled volume in an hour, and the reads of all its volumes.
create or replace function public.instance_volumes(as_of timestamptz) returns table (
  instance_id text, volume_id text, minutes_throttled integer, queue_length_mean double precision,
  burst_balance_min_percent double precision,
  read_bytes_per_second double precision, baseline_read_bytes_per_second double precision  -- of all its volumes
) language sql stable rows 500 as $$
  select distinct on (a.instance_id)
    a.instance_id,
    v.volume_id,
    v.minutes_throttled,
    v.queue_length_mean,
    v.burst_balance_min_percent,
    sum(v.read_bytes) over (partition by a.instance_id) / 3600,
    sum(v.read_baseline_bytes_per_second) over (partition by a.instance_id)
  from inventory.volume_hourly as a
  inner join metrics.volume_hourly as v
    on a.hour = v.hour and a.account = v.account and a.region = v.region and a.volume_id = v.volume_id
  where a.hour = as_of
  order by
    a.instance_id asc, v.minutes_throttled desc nulls last, v.queue_length_mean desc nulls last, v.volume_id asc
$$;
comment on function public.instance_volumes is
'For each instance its most throttled volume in an hour, and the reads of all its volumes.';

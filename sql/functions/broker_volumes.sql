-- For each broker and application its most throttled volume in an hour, and the reads of all its volumes.
create or replace function public.broker_volumes(as_of timestamptz) returns table (
  cluster text, endpoint text, volume_id text, minutes_throttled integer, queue_length_mean double precision,
  burst_balance_min_percent double precision,
  read_bytes_per_second double precision, baseline_read_bytes_per_second double precision  -- of all its volumes
) language sql stable rows 500 as $$
  select distinct on (u.cluster, u.endpoint)
    u.cluster,
    u.endpoint,
    v.volume_id,
    v.minutes_throttled,
    v.queue_length_mean,
    v.burst_balance_min_percent,
    sum(v.read_bytes) over process / 3600,
    sum(v.read_baseline_bytes_per_second) over process
  from inventory.used_volumes(as_of) as u
  inner join metrics.volume_hourly as v
    on v.hour = as_of and u.account = v.account and u.region = v.region and u.volume_id = v.volume_id
  window process as (partition by u.cluster, u.endpoint)
  order by
    u.cluster asc, u.endpoint asc, v.minutes_throttled desc nulls last, v.queue_length_mean desc nulls last,
    v.volume_id asc
$$;
comment on function public.broker_volumes is
'For each broker and application its most throttled volume in an hour, and the reads of all its volumes.';

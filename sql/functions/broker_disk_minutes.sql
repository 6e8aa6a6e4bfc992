-- Read rate of the brokers' volumes in each minute of an hour, with its baseline at that hour of the week.
create or replace function public.broker_disk_minutes(as_of timestamptz) returns table (
  cluster text, broker_id integer, account text, region text, volume_id text,
  baseline_bytes_per_second double precision, baseline_mad_bytes_per_second double precision, baseline_hours integer,
  baseline_kind text, at timestamptz, period_seconds integer, read_bytes_per_second double precision
) language sql stable as $$
  select
    b.cluster, coalesce(k.claim_broker_id, b.broker_id), v.account, v.region, v.volume_id,
    m.read_baseline_bytes_per_second, m.read_baseline_mad_bytes_per_second, m.read_baseline_hours, m.read_baseline_kind,
    s.at, s.period_seconds, s.read_bytes / s.period_seconds
  from (
    -- A broker and a controller may share a host.
    select cluster, instance_id, min(broker_id) as broker_id
    from metrics.broker_hourly
    where hour = as_of
    group by cluster, instance_id
  ) as b
  inner join inventory.volume_hourly as v on b.instance_id = v.instance_id and v.hour = as_of
  left join metrics.volume_hourly as m using (hour, account, region, volume_id)
  left join metrics.volume_sample as s
    on v.account = s.account and v.region = s.region and v.volume_id = s.volume_id
    and s.at >= as_of and s.at < as_of + interval '1 hour' and s.read_bytes is not null
  -- On Kubernetes a node has volumes of other pods too.
  left join inventory.pod_volumes(as_of) as k on v.volume_id = k.volume_id
  where k.volume_id is null or (k.claim_role = 'broker' and k.claim_cluster = b.cluster)
$$;
comment on function public.broker_disk_minutes is
'Read rate of the brokers'' volumes in each minute of an hour, with its baseline (median and deviation) at that hour of the week. A volume without any known minute has one row without a time.';

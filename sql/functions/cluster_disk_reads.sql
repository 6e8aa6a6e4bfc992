-- Disk reads of each cluster's brokers in an hour: the sums of broker_disk_reads over the volumes that were above their
-- baseline. All is null or 0 where none was. A volume with less than named_share of the largest excess is not listed.
create or replace function public.cluster_disk_reads(
  of_hour timestamptz, spike_mads double precision, floor_bytes_per_second double precision,
  sustained_minutes double precision, heavy_bytes double precision, named_share double precision
) returns table (
  cluster text,
  volumes_known bigint,
  volumes_unknown bigint,                      -- without reads or without a baseline
  volumes_above bigint,
  highest double precision,                    -- bytes per second of any volume in any minute
  since timestamptz,
  until timestamptz,
  minutes double precision,                    -- minutes above the baseline
  read double precision,                       -- bytes per second in these minutes
  baseline double precision,
  counted_read double precision,               -- bytes per second in the time that JMX covers
  counted_excess double precision,
  baseline_hours integer,                      -- null: the baseline is that of this hour of the week
  volumes json
) language sql stable as $$
  select
    cluster,
    count(*) as volumes_known,
    count(*) filter (where minutes_known = 0 or baseline_bytes_per_second is null) as volumes_unknown,
    count(*) filter (where is_above) as volumes_above,
    max(highest_bytes_per_second) as highest,
    loud_from as since,
    loud_until as until,
    loud_minutes as minutes,
    sum(above_bytes_per_second) as read,
    sum(baseline_bytes_per_second) filter (where is_above) as baseline,
    sum(counted_bytes_per_second) filter (where is_above) as counted_read,
    sum(counted_excess_bytes_per_second) filter (where is_above) as counted_excess,
    min(baseline_hours) filter (where is_above and baseline_kind = 'all_hours') as baseline_hours,
    json_agg(
      json_build_object(
        'volume_id', volume_id, 'broker_id', broker_id, 'minutes_above', minutes_above,
        'read_bytes_per_second', above_bytes_per_second, 'highest_bytes_per_second', highest_bytes_per_second,
        'baseline_bytes_per_second', baseline_bytes_per_second
      )
      order by above_bytes_per_second desc, volume_id asc
    ) filter (where is_named) as volumes
  from (
    select
      *,
      minutes_above > 0 as is_above,
      above_bytes_per_second - baseline_bytes_per_second
      >= named_share * max(above_bytes_per_second - baseline_bytes_per_second) over (partition by cluster) as is_named
    from public.broker_disk_reads(of_hour, spike_mads, floor_bytes_per_second, sustained_minutes, heavy_bytes)
  ) as v
  group by cluster, loud_from, loud_until, loud_minutes
$$;
comment on function public.cluster_disk_reads is
'Disk reads of each cluster''s brokers in an hour, over the volumes that were above their baseline.';

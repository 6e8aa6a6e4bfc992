-- Reads of each volume of the brokers in an hour, and for how long they exceeded the baseline.
-- A minute is loud if one volume, or all volumes of the cluster together, read more than spike_mads deviations and the
-- floor above the baseline. A cluster is loud if it had sustained_minutes such minutes, or fewer in which it read
-- heavy_bytes above the baseline. minutes_above are a volume's loud minutes in which the volume itself was above.
create or replace function public.broker_disk_reads(
  as_of timestamptz, spike_mads double precision, floor_bytes_per_second double precision,
  sustained_minutes double precision, heavy_bytes double precision default 'infinity'
) returns table (
  cluster text, broker_id integer, volume_id text, baseline_bytes_per_second double precision, baseline_hours integer,
  baseline_kind text, minutes_known bigint, minutes_above double precision, since timestamptz,
  highest_bytes_per_second double precision, above_bytes_per_second double precision,
  counted_bytes_per_second double precision, counted_excess_bytes_per_second double precision,
  loud_from timestamptz, loud_until timestamptz, loud_minutes double precision
) language sql stable as $$
  with minute as materialized (
    select
      d.*,
      d.read_bytes_per_second - d.baseline_bytes_per_second as excess,
      spike_mads * greatest(d.baseline_mad_bytes_per_second, 0.1 * d.baseline_bytes_per_second) as margin
    from public.broker_disk_minutes(as_of) as d
  ),

  loud_minute as (
    select cluster, at, max(period_seconds) as period_seconds, sum(excess * period_seconds) as excess_bytes
    from minute
    where at is not null
    group by cluster, at
    having
      bool_or(excess > greatest(margin, floor_bytes_per_second))
      or sum(excess) > greatest(sqrt(sum(margin * margin)), floor_bytes_per_second)
  ),

  loud as (
    select
      cluster,
      min(at) as since,
      max(at + make_interval(secs => period_seconds)) as until,
      sum(period_seconds) / 60.0 as minutes
    from loud_minute
    group by cluster
    having sum(period_seconds) / 60.0 >= sustained_minutes or sum(excess_bytes) >= heavy_bytes
  ),

  volume as (
    select
      m.cluster, m.broker_id, m.account, m.region, m.volume_id, m.baseline_bytes_per_second, m.baseline_hours,
      m.baseline_kind,
      count(m.at) as minutes_known,
      coalesce(sum(m.period_seconds) filter (where a.is_above), 0) / 60.0 as minutes_above,
      min(m.at) filter (where a.is_above) as since,
      max(m.read_bytes_per_second) as highest,
      avg(m.read_bytes_per_second) filter (where a.is_above) as above,
      -- Weighted by the seconds of each minute that JMX counters cover.
      sum(m.read_bytes_per_second * o.seconds) / sum(o.seconds) as counted,
      sum(case when m.excess > m.margin then m.excess else 0 end * o.seconds) / sum(o.seconds) as counted_excess
    from minute as m
    left join loud_minute as l on m.cluster = l.cluster and m.at = l.at
    left join loud as c on m.cluster = c.cluster
    left join public.topic_counted as t on m.cluster = t.cluster and t.hour = as_of
    cross join lateral (select l.at is not null and c.cluster is not null and m.excess > m.margin as is_above) as a
    left join lateral (
      select
        extract(
          epoch from least(m.at + make_interval(secs => m.period_seconds), t.counted_to) - greatest(m.at, t.counted_from)
        ) as seconds
      where m.at < t.counted_to and m.at + make_interval(secs => m.period_seconds) > t.counted_from
    ) as o on true
    group by
      m.cluster, m.broker_id, m.account, m.region, m.volume_id, m.baseline_bytes_per_second, m.baseline_hours,
      m.baseline_kind
  )

  select
    v.cluster, v.broker_id, v.volume_id, v.baseline_bytes_per_second, v.baseline_hours, v.baseline_kind,
    v.minutes_known, v.minutes_above, v.since, v.highest, v.above,
    -- CloudWatch's minutes arrive late: if none of them is in the span of the JMX counters, the loud minutes are used instead.
    coalesce(v.counted, v.above), coalesce(v.counted_excess, v.above - v.baseline_bytes_per_second),
    loud.since, loud.until, loud.minutes
  from volume as v
  left join loud using (cluster)
$$;
comment on function public.broker_disk_reads is
'Reads of each volume of the brokers in an hour: for how long they exceeded the baseline (above), how much was read while JMX counted the topics'' bytes (counted), and when the cluster was loud; null unless it was loud for sustained_minutes or read heavy_bytes above the baseline.';

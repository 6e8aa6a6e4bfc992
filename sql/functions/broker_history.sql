-- Log flushes and traffic of each broker in the four weeks before an hour, as arrays by hour for baselines, and how long
-- flushes typically take. Only hours with at least `floor_bytes_per_second` written count for the time per byte of two weeks.
create or replace function public.broker_history(as_of timestamptz, floor_bytes_per_second double precision)
returns table (
  cluster text, endpoint text, hours timestamptz[], log_flush_p95_ms double precision[],
  produce_p99_ms double precision[], fetch_follower_p99_ms double precision[], cpu_ratio double precision[],
  written_bytes_per_second double precision[], bytes_out_per_second double precision[],
  log_flush_p999_ms double precision,          -- of two weeks: exceeded in a tenth of the hours
  flush_ms_per_byte double precision,
  day_log_flush_p999_ms double precision,      -- of the last 24 hours, including this one: the median
  day_flush_ms_per_byte double precision,
  last_log_flush_p95_ms double precision       -- of the hour before
) language sql stable rows 100 as $$
  with flushed as (
    select
      b.*,
      w.written_bytes_per_second,
      b.log_flush_mean_ms * b.log_flushes_per_second / nullif(w.written_bytes_per_second, 0) as flush_ms_per_byte,
      b.hour < as_of as is_past,
      b.hour < as_of and b.hour >= as_of - interval '14 days' as is_recent,
      b.hour > as_of - interval '24 hours' as is_last_day
    from metrics.broker_hourly as b
    cross join lateral (
      select b.bytes_in_per_second + coalesce(b.replication_bytes_in_per_second, 0) as written_bytes_per_second
    ) as w
    where b.hour between as_of - interval '672 hours' and as_of
  )

  select
    cluster,
    endpoint,
    array_agg(hour) filter (where is_past),
    array_agg(log_flush_p95_ms) filter (where is_past),
    array_agg(produce_p99_ms) filter (where is_past),
    array_agg(fetch_follower_p99_ms) filter (where is_past),
    array_agg(cpu_ratio) filter (where is_past),
    array_agg(written_bytes_per_second) filter (where is_past),
    array_agg(bytes_out_per_second) filter (where is_past),
    percentile_cont(0.9) within group (order by log_flush_p999_ms) filter (where is_recent),
    percentile_cont(0.9) within group (order by flush_ms_per_byte)
      filter (where is_recent and written_bytes_per_second >= floor_bytes_per_second),
    percentile_cont(0.5) within group (order by log_flush_p999_ms) filter (where is_last_day),
    percentile_cont(0.5) within group (order by flush_ms_per_byte) filter (where is_last_day),
    max(log_flush_p95_ms) filter (where hour = as_of - interval '1 hour')
  from flushed
  group by cluster, endpoint
$$;
comment on function public.broker_history is
'Log flushes and traffic of each broker in the four weeks before an hour, as arrays by hour, and how long flushes typically take.';

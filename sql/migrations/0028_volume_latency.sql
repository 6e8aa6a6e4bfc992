-- How long requests took while nothing held the volume back: what is slow is told against the volume's own past.
alter table metrics.volume_hourly
  add column latency_p05_ms double precision,  -- Time of a request in the minutes that nothing held back: their 5th percentile
  add column latency_p25_ms double precision,  -- 25th percentile of these minutes
  add column latency_p50_ms double precision,  -- Median of these minutes
  add column latency_p75_ms double precision;  -- 75th percentile: in a quarter of them requests took at least so long
comment on column metrics.volume_sample.burst_balance_percent is
'BurstBalance, the period''s lowest; null: no bucket, or not attached';

-- A volume, hour by hour: metrics, and the settings that changes are found by.
select
  h.hour,
  m.iops_mean,
  m.burst_balance_min_percent,
  m.queue_length_mean,
  m.bytes_per_second_mean,
  m.iops_p99,
  m.baseline_iops,
  m.baseline_bytes_per_second,
  m.read_latency_ms,
  m.write_latency_ms,
  m.hours_to_exhaustion,
  m.minutes_throttled,
  jsonb_build_object(
    'volume_type', v.volume_type, 'size_gib', v.size_gib, 'provisioned_iops', v.provisioned_iops,
    'provisioned_throughput_mib_s', v.provisioned_throughput_mib_s, 'attached_to', v.instance_id
  ) as state
from generate_series(cast(:start as timestamptz), cast(:finish as timestamptz), interval '1 hour') as h (hour)
left join lateral (
  select * from metrics.volume_hourly as m
  where
    m.hour = h.hour
    and m.account = :account
    and m.region = :region
    and m.volume_id = :volume_id
) as m on true
left join lateral (
  select * from inventory.volume_hourly as v
  where v.hour = h.hour and v.account = :account and v.region = :region and v.volume_id = :volume_id
) as v on true
order by h.hour

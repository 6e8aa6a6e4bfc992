/*
title: Network throughput against its limits
unit: bytes/s
kind: lines
why: "Above the baseline the instance spends network credits, which AWS does not expose; a flat line at the baseline is throttled."
*/
with one as (
  select
    hour,
    max(baseline_bytes_per_second) as baseline,
    max(peak_bytes_per_second) as peak,
    max(bytes_per_second_max) as highest
  from metrics.instance_network_hourly
  where hour = :hour and account = :account and region = :region and instance_id = :instance_id
  group by hour
)

select
  s.at,
  line.series,
  line.value
from one as o
inner join metrics.instance_network_sample as s
  on s.at >= o.hour - interval '5 hours' and s.at < o.hour + interval '1 hour'
cross join lateral (
  values
  ('received', s.in_bytes / s.period_seconds),
  ('sent', s.out_bytes / s.period_seconds),
  ('limit Baseline bandwidth', o.baseline),
  ('limit Peak bandwidth', case when o.highest >= 0.5 * o.peak then o.peak end)
) as line (series, value)
where s.account = :account and s.region = :region and s.instance_id = :instance_id and line.value is not null
order by s.at, line.series

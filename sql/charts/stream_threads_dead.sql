/*
title: Stream threads of the process
unit: threads
kind: lines
below: {title: "Consumer group lag (worst partition)", unit: seconds}
why: "Alive threads drop while failed threads rise: threads died. Without failures, threads were removed; the lag shows the impact."
*/
with process as (
  select
    hour,
    cluster,
    application_id,
    stream_threads_alive,
    stream_threads_failed
  from metrics.jvm_app_hourly
  where cluster = :cluster and endpoint = :endpoint
  and hour > :hour - interval '48 hours' and hour <= :hour
)

select
  p.hour as at,
  line.series,
  line.value,
  line.is_below
from process as p
left join metrics.consumer_group_hourly as g
  on p.hour = g.hour and p.cluster = g.cluster
  and g.group_id = (select max(application_id) from process)
cross join lateral (
  values
  ('alive', p.stream_threads_alive, false),
  ('failed since start', p.stream_threads_failed, false),
  ('lag', g.lag_seconds_max, true)
) as line (series, value, is_below)
order by at, series

-- A client, hour by hour: what its consumers and producers counted.
select
  h.hour,
  m.bytes,
  m.records,
  m.throttle_mean_ms_max,
  m.record_errors,
  m.requests,
  m.fetches,
  m.poll_gap_max_ms,
  cast(null as jsonb) as state
from generate_series(cast(:start as timestamptz), cast(:finish as timestamptz), interval '1 hour') as h (hour)
left join lateral (
  select
    sum(c.bytes) as bytes,
    sum(c.records) as records,
    max(c.throttle_mean_ms) as throttle_mean_ms_max,
    sum(c.record_errors) as record_errors,
    sum(c.requests) as requests,
    sum(c.fetches) as fetches,
    max(c.poll_gap_max_ms) as poll_gap_max_ms
  from metrics.client_hourly as c
  where
    c.hour = h.hour and c.cluster = :cluster and c.client_id = :client_id
    -- The key of the table begins with hour, cluster, and endpoint.
    and c.endpoint = any(array(
      select distinct n.endpoint from metrics.client_hourly as n
      where
        n.hour > cast(:finish as timestamptz) - interval '3 hours' and n.hour <= cast(:finish as timestamptz)
        and n.cluster = :cluster and n.client_id = :client_id
    ))
) as m on true
order by h.hour

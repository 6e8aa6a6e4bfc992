-- Each firing finding with a reason that starts a mechanism: when it fired last, and since when it has fired. A verdict
-- over several hours, such as a crash loop, began with the first of its evidence. A cause without data before it fired may
-- have begun in those hours.
with cause_reason as (
  select * from jsonb_to_recordset(cast(:causes as jsonb)) as (mechanism text, detector text, reasons text[])
),

recent_firing as (
  select distinct on (f.fingerprint, c.mechanism)
    c.mechanism,
    m.kinds,
    f.fingerprint,
    f.resource,
    f.cluster,
    f.hour,
    f.affected,
    f.metrics,
    c.reasons
  from firing as f
  inner join cause_reason as c on f.detector = c.detector and f.reason = any(c.reasons)
  inner join mechanism as m on c.mechanism = m.mechanism
  where coalesce((f.metrics ->> m.if_metric)::boolean, true)
  order by f.fingerprint asc, c.mechanism asc, f.hour desc
)

select
  r.*,
  least(b.may_have_begun, date_trunc('hour', s.since, 'UTC')) as began,
  -- After hours without data, the first minute with data is not the first of the fault.
  case when b.may_have_begun = b.began then s.since end as since
from recent_firing as r
cross join lateral detect.firing_began(r.fingerprint, r.reasons, r.hour) as b
cross join lateral (select detect.since_of(r.metrics) as since) as s

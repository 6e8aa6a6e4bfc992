-- What a finding was held against as its cause in an hour, the likeliest first: one row without a cause if nothing was,
-- and none at all where the hour's causes weren't weighed.
select
  w.hour,
  c.cause,
  c.strength,
  c.is_accepted,
  c.time_factor,
  c.share_factor,
  c.siblings_factor,
  c.amount_factor,
  c.message,
  c.metrics,
  t.title as cause_title
from detect.weighing as w
left join detect.cause as c on w.hour = c.hour and c.effect = :fingerprint
left join lateral (
  select n.title from tickets.ticket as n where n.fingerprint = c.cause order by n.ticket_id desc limit 1
) as t on true
where w.hour = :hour
order by c.strength desc, c.cause asc

-- Causes weighed for a finding in an hour, most likely first: one row without a cause if there were none, and no row if the
-- causes of the hour were not weighed.
select
  w.hour,
  c.cause,
  c.strength,
  c.is_accepted,
  c.is_possible,
  c.time_factor,
  c.share_factor,
  c.peers_factor,
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

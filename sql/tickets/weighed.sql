-- Causes weighed for a finding when it last fired, most likely first.
select
  c.hour,
  c.cause,
  c.mechanism,
  c.strength,
  c.is_accepted,
  c.is_possible,
  c.place_factor,
  c.time_factor,
  c.share_factor,
  c.peers_factor,
  c.amount_factor,
  c.path,
  c.seen_hour,
  c.message,
  c.metrics,
  e.resource_name,
  d.title
from detect.cause as c
left join lateral (
  select
    v.resource_name,
    v.detector
  from detect.evaluation as v
  where v.fingerprint = c.cause and v.hour <= c.hour and v.hour > c.hour - interval '6 hours' and v.status = 'firing'
  order by v.hour desc
  limit 1
) as e on true
left join detect.detector as d on e.detector = d.detector
where
  c.effect = :fingerprint
  and c.hour = (select max(n.hour) from detect.cause as n where n.effect = :fingerprint)
order by c.strength desc, c.cause asc

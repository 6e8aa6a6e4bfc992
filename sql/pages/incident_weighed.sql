-- Pairs last weighed for an incident's findings: each finding with its likeliest causes, and with its possible effects.
select
  c.hour,
  c.effect,
  c.cause,
  c.strength,
  c.is_accepted,
  c.is_possible,
  c.place_factor,
  c.time_factor,
  c.share_factor,
  c.peers_factor,
  c.amount_factor,
  c.path,
  c.message,
  c.metrics,
  effect.title as effect_title,
  cause.title as cause_title
from detect.cause as c
left join lateral (
  select t.title from tickets.ticket as t where t.fingerprint = c.effect order by t.ticket_id desc limit 1
) as effect on true
left join lateral (
  select t.title from tickets.ticket as t where t.fingerprint = c.cause order by t.ticket_id desc limit 1
) as cause on true
where
  c.hour = (
    select max(n.hour) from detect.cause as n
    where n.hour <= cast(:newest as timestamptz) and n.effect = any(cast(:fingerprints as text[]))
  )
  and (
    c.effect = any(cast(:fingerprints as text[]))
    or (c.cause = any(cast(:fingerprints as text[])) and effect.title is not null)
  )
order by c.strength desc, c.effect asc, c.cause asc

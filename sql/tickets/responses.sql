-- Responses of people to findings, newest first.
select
  a.response_id,
  a.fingerprint,
  a.verb,
  a.who,
  a.place,
  a.words,
  a.until,
  a.other,
  a.said_at,
  t.title,
  o.title as other_title,
  count(*) over () as total
from tickets.response as a
left join tickets.ticket as t on a.ticket_id = t.ticket_id
left join lateral (
  select n.title from tickets.ticket as n where n.fingerprint = a.other order by n.ticket_id desc limit 1
) as o on true
where a.fingerprint = any(cast(:fingerprints as text[]))
order by a.response_id desc
limit cast(:most as integer)

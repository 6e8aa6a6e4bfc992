-- False positives that people reported for a detector, newest first, and their number.
select
  a.fingerprint,
  coalesce(t.resource_name, e.resource_name) as resource_name,
  a.who,
  a.place,
  a.words,
  a.said_at,
  count(*) over () as times,
  (
    select count(distinct w.fingerprint) from tickets.response as w where w.detector = a.detector and w.verb = 'false_positive'
  ) as findings,
  (select count(*) from tickets.ticket as n where n.detector = a.detector) as tickets
from tickets.response as a
left join tickets.ticket as t on a.ticket_id = t.ticket_id
left join lateral (
  select v.resource_name from detect.evaluation as v where v.fingerprint = a.fingerprint order by v.hour desc limit 1
) as e on true
where a.detector = :detector and a.verb = 'false_positive'
order by a.response_id desc
limit cast(:most as integer)

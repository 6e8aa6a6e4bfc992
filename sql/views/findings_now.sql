-- What is wrong now: findings in alarm in their detector's newest judged hour, and those whose ticket is still open.
create or replace view public.findings_now as
select
  coalesce(e.severity, t.severity, 'info') as severity,  -- critical, warning or info; of the ticket where it isn't in alarm now
  case when e.hour = newest.hour then e.status else 'unseen' end as status,  -- alarm, ok, skip (can't be judged), or unseen: absent from the newest hour
  e.detector,  -- Detector id
  d.title,  -- What is wrong, in general
  e.resource,  -- The resource
  e.reason,  -- What its detector says of it, with figures
  e.cure as advice,  -- What to do about it
  alarm.since as since_hour,  -- First hour in alarm without a healthy hour since (UTC)
  e.hour as judged_hour,  -- Hour that was judged (UTC)
  t.ticket_id,  -- Our ticket's id; null: none is open
  filed.external_key as ticket_key,  -- Key in the tracker
  filed.external_url as ticket_url,  -- Link to the tracker
  t.muted,  -- wont_fix or snoozed, where people said so
  e.fingerprint,  -- Id of the finding, for joins and links
  e.because,  -- Which case of the detector it is
  e.thing,  -- Key of the thing it is about, as in the view thing
  e.owner,  -- Who owns the thing; null: nobody is named
  e.application,  -- Application that the thing belongs to
  e.commands,  -- Lines to paste into a shell
  e.figures,  -- The detector's figures, raw
  e.convinces  -- The few of them that convince, in their order
from (
  select v.fingerprint
  from (select detector, max(hour) as hour from detect.judgement where status = 'judged' group by detector) as judged
  inner join detect.evaluation as v on judged.detector = v.detector and judged.hour = v.hour
  where v.status = 'alarm'
  union
  select fingerprint from tickets.ticket where state = 'open'
) as candidate
cross join lateral (
  select * from detect.evaluation as e where e.fingerprint = candidate.fingerprint order by e.hour desc limit 1
) as e
inner join detect.detector as d on e.detector = d.detector
inner join (select detector, max(hour) as hour from detect.judgement where status = 'judged' group by detector) as newest
  on e.detector = newest.detector
left join tickets.ticket as t on e.fingerprint = t.fingerprint and t.state = 'open'
left join public.ticket_filed as filed on t.ticket_id = filed.ticket_id
left join lateral (
  select min(a.hour) as since from detect.evaluation as a
  where
    a.fingerprint = e.fingerprint and a.status = 'alarm'
    and a.hour > coalesce(
      (
        select max(o.hour) from detect.evaluation as o
        where o.fingerprint = e.fingerprint and o.status = 'ok' and o.hour < e.hour
      ),
      '-infinity'
    )
) as alarm on true;

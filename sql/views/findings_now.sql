-- What is wrong now: findings in alarm in their detector's newest judged hour, and those whose ticket is still open.
create or replace view public.findings_now as
select
  coalesce(e.severity, t.severity, 'info') as severity,  -- critical, warning or info; of the ticket where it isn't in alarm now
  case when e.hour = newest.hour then e.status else 'unseen' end as status,  -- alarm, ok, skip (can't be judged), or unseen: absent from the newest hour
  e.detector,  -- Detector id
  d.title,  -- What is wrong, in general
  e.resource_name,  -- The resource
  e.message,  -- What its detector says of it, with figures
  e.details,  -- Further evidence, a list of sentences
  e.impact,  -- What happens to whom if nothing is done
  e.actions,  -- What to do, in order
  s.since_hour,  -- First hour in alarm without a healthy hour since (UTC)
  e.hour as judged_hour,  -- Hour that was judged (UTC)
  t.ticket_id,  -- Our ticket's id; null: none is open
  filed.external_key as ticket_key,  -- Key in the tracker
  filed.external_url as ticket_url,  -- Link to the tracker
  t.muted,  -- wont_fix or snoozed, where people said so
  coalesce(place.acknowledged_by, t.acknowledged_by) as acknowledged_by,  -- Who works on it, where somebody said so
  e.fingerprint,  -- Id of the finding, for joins and links
  e.reason,  -- Which case of the detector it is
  e.resource,  -- Key of the thing it is about, as in the view thing
  e.owner,  -- Who owns the thing; null: nobody is named
  e.application,  -- Application that the thing belongs to
  e.commands,  -- Lines to paste into a shell
  e.metrics,  -- The detector's figures, raw
  e.key_metrics  -- The few of them that convince, in their order
from (
  select v.fingerprint
  from detect.detector as d
  cross join lateral (
    select max(j.hour) as hour from detect.detector_run as j where j.detector = d.detector and j.status = 'evaluated'
  ) as judged
  cross join lateral (
    select a.fingerprint from detect.evaluation as a
    where a.hour = judged.hour and a.detector = d.detector and a.status = 'firing'
  ) as v
  union
  select fingerprint from tickets.ticket where state = 'open'
) as candidate
cross join lateral (
  select * from detect.evaluation as e where e.fingerprint = candidate.fingerprint order by e.hour desc limit 1
) as e
inner join detect.detector as d on e.detector = d.detector
cross join lateral (
  select max(j.hour) as hour from detect.detector_run as j where j.detector = d.detector and j.status = 'evaluated'
) as newest
left join tickets.ticket as t on e.fingerprint = t.fingerprint and t.state = 'open'
left join tickets.ticket as place on t.summary_ticket_id = place.ticket_id and place.detector <> 'storm'
left join public.ticket_filed as filed on t.ticket_id = filed.ticket_id
left join detect.open_finding as s on e.fingerprint = s.fingerprint
where newest.hour is not null;

-- Open findings: those that are firing in their detector's newest evaluated hour, and those with an open ticket.
create or replace view public.findings_now as
select
  coalesce(e.severity, t.severity, 'info') as severity,  -- critical, warning or info; the ticket's severity if it is not firing now
  case when e.hour = newest.hour then e.status else 'unseen' end as status,  -- firing, ok, unknown (not evaluated), or unseen: not found in the newest hour
  e.detector,  -- Detector id
  d.title,  -- Title of the detector
  e.resource_name,  -- The resource
  e.message,  -- Message of its detector, with measured values
  e.details,  -- Further evidence, a list of sentences
  e.impact,  -- Impact if nothing is done
  e.actions,  -- Recommended actions, in order
  s.since_hour,  -- First firing hour without a healthy hour since (UTC)
  e.hour as evaluated_hour,  -- Hour that was evaluated (UTC)
  t.ticket_id,  -- Open ticket; null: none
  filed.external_key as ticket_key,  -- Issue key in the tracker
  filed.external_url as ticket_url,  -- Issue URL
  t.muted,  -- wont_fix or snoozed, set by people; null: not muted
  coalesce(place.acknowledged_by, t.acknowledged_by) as acknowledged_by,  -- Who acknowledged it; null: nobody
  e.fingerprint,  -- Id of the finding, for joins and links
  e.reason,  -- Verdict of the detector
  e.resource,  -- Key of the resource, as in the view resource
  e.owner,  -- Owner of the resource; null: unassigned
  e.application,  -- Application that the resource belongs to
  e.commands,  -- Commands to paste into a shell
  e.metrics,  -- Metrics of the detector, unformatted
  e.key_metrics,  -- Key metrics, in order
  coalesce(t.opened_hour, s.since_hour) as first_hour,  -- First firing hour of the open ticket, or of the finding (UTC)
  detect.firing_since(e.fingerprint) as firing_since  -- Start of the problem to the minute (UTC); null: between the hour before first_hour and its end
from (
  select v.fingerprint
  from detect.detector as d
  cross join lateral (
    select max(j.hour) as hour from detect.detector_run as j where j.detector = d.detector and j.status = 'evaluated'
  ) as evaluated
  cross join lateral (
    select a.fingerprint from detect.evaluation as a
    where a.hour = evaluated.hour and a.detector = d.detector and a.status = 'firing'
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

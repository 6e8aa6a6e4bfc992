-- Incidents: root causes with their downstream effects, open and closed. One row per ticket that represents others or stands alone, also for the summaries of alert storms.
create or replace view public.incidents as
select
  t.ticket_id,  -- Ticket that represents the incident in the tracker
  t.fingerprint,  -- Finding of that ticket, for joins and links
  t.detector,  -- Detector of that finding; storm: the summary of an alert storm
  coalesce(t.issue_title, t.title) as title,  -- Title in the tracker
  coalesce(t.issue_severity, t.severity) as severity,  -- Highest severity of its findings
  t.state,  -- open or closed
  t.resource,  -- Key of the resource
  t.resource_name,  -- Its name
  t.owner,  -- Owner; null: unassigned
  t.opened_hour,  -- First firing hour (UTC)
  coalesce(t.closed_hour, t.resolved_hour) as resolved_hour,  -- Hour in which its own finding was resolved (UTC); null: not resolved
  t.close_reason,  -- healthy, deleted, person, or wont_fix; null: open
  extract(epoch from t.closed_hour - t.opened_hour) / 3600 as hours_open,  -- Hours from the first firing hour to the closing hour; null: open
  t.muted,  -- wont_fix or snoozed, set by people; null: not muted
  t.muted_until,  -- End of a snooze (UTC)
  t.acknowledged_by,  -- Who acknowledged it; null: not acknowledged
  (
    select count(*) from tickets.ticket as m where m.summary_ticket_id = t.ticket_id
  ) as downstream_effects,  -- Further findings of the incident
  filed.external_key as ticket_key,  -- Issue key in the tracker; null: not filed yet
  filed.external_url as ticket_url  -- Issue URL
from tickets.ticket as t
left join lateral (
  select i.external_key, i.external_url from tickets.issue as i
  where i.ticket_id = t.ticket_id
  order by i.external_key is null asc, i.created_at asc, i.tracker asc
  limit 1
) as filed on true
where t.summary_ticket_id is null;

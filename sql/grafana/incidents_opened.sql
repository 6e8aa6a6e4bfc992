-- Incidents by the day on which they began, and severity.
select
  date_trunc('day', t.opened_hour) as time,
  coalesce(t.issue_severity, t.severity) as metric,
  count(*)::double precision as value
from tickets.ticket as t
where
  t.summary_ticket_id is null
  and t.opened_hour >= cast(:start as timestamptz) and t.opened_hour < cast(:finish as timestamptz)
group by date_trunc('day', t.opened_hour), coalesce(t.issue_severity, t.severity)
order by date_trunc('day', t.opened_hour), coalesce(t.issue_severity, t.severity)

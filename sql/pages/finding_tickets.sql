-- All tickets of a finding, newest first; one that a storm's summary stands for has that one's link.
select
  t.ticket_id,
  t.state,
  t.severity,
  t.muted,
  t.muted_until,
  t.opened_hour,
  t.last_alarm_hour,
  t.closed_hour,
  t.close_reason,
  t.sink,
  t.summary_ticket_id is not null as in_summary,
  coalesce(t.external_key, s.external_key) as external_key,
  coalesce(t.external_url, s.external_url) as external_url,
  (select count(*) from tickets.change as c where c.ticket_id = t.ticket_id and c.done_at is null) as untold,
  (
    select c.error from tickets.change as c
    where c.ticket_id = t.ticket_id and c.done_at is null and c.error is not null
    order by c.change_id limit 1
  ) as error
from tickets.ticket as t
left join tickets.ticket as s on t.summary_ticket_id = s.ticket_id
where t.fingerprint = :fingerprint
order by t.ticket_id desc
limit 20

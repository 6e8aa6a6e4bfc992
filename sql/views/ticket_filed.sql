-- The issue that people are sent to for a ticket: the first one filed in a tracker. Tickets of an alert storm share the summary's issue.
create or replace view public.ticket_filed as
select distinct on (t.ticket_id)
  t.ticket_id,  -- Ticket id
  i.tracker,  -- The tracker's name in the config
  i.external_key,  -- Issue key; null: not filed yet
  i.external_url  -- Issue URL
from tickets.ticket as t
inner join tickets.issue as i on coalesce(t.summary_ticket_id, t.ticket_id) = i.ticket_id
order by t.ticket_id asc, i.external_key is null asc, i.created_at asc, i.tracker asc;

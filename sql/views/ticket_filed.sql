-- The issue that people are sent to for a ticket: the first that a tracker has. What is in a storm's summary has that one.
create or replace view public.ticket_filed as
select distinct on (t.ticket_id)
  t.ticket_id,  -- Our id
  i.tracker,  -- The tracker's name in the config
  i.external_key,  -- Key there; null: no tracker has it yet
  i.external_url  -- Link there
from tickets.ticket as t
inner join tickets.issue as i on coalesce(t.summary_ticket_id, t.ticket_id) = i.ticket_id
order by t.ticket_id asc, i.external_key is null asc, i.created_at asc, i.tracker asc;

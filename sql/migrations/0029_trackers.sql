-- A ticket may be in several trackers: what each has of it, and how far each was told.

-- A ticket in a tracker.
create table tickets.issue (
  ticket_id bigint not null references tickets.ticket,  -- Ticket
  tracker text not null,  -- The tracker's name in the config
  external_key text,  -- Key there; null: not yet filed
  external_url text,  -- Link there
  state text,  -- As people have it there: open, acknowledged, snoozed, wont_fix or closed; null: not yet asked
  delivered_change_id bigint not null default 0,  -- Newest change it was told; later ones are told in their order
  attempts integer not null default 0,  -- Times that the next change was tried
  error text,  -- Why it isn't told yet, one line
  attempted_at timestamptz,  -- Last try (UTC)
  unsure_at timestamptz,  -- When the next change was sent without a clear answer (UTC); null: it wasn't
  created_at timestamptz not null default now(),  -- When (UTC); a ticket's first issue is the one that people are sent to
  primary key (ticket_id, tracker)
);
create index issue_by_key on tickets.issue (tracker, external_key);

insert into tickets.issue (ticket_id, tracker, external_key, external_url, delivered_change_id, created_at)
select
  t.ticket_id,
  t.sink,
  t.external_key,
  t.external_url,
  coalesce(min(c.change_id) filter (where c.done_at is null) - 1, max(c.change_id), 0),
  t.created_at
from tickets.ticket as t
left join tickets.change as c on t.ticket_id = c.ticket_id
where t.summary_ticket_id is null
group by t.ticket_id;

alter table tickets.ticket drop column sink, drop column external_key, drop column external_url;

drop index tickets.change_to_do;
alter table tickets.change
  drop column attempts, drop column error, drop column attempted_at, drop column done_at,
  add column tracker text;  -- The only tracker that is told; null: every one that has the ticket
comment on table tickets.change is 'What is told to trackers: committed before any of them is called.';

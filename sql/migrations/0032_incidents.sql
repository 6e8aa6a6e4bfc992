-- An incident is one ticket in the tracker: that of one finding, in which those stand that follow from it.
alter table tickets.ticket
  add column role text not null default 'alone' check (role in ('root', 'follows', 'alone')),  -- root: others follow from it; follows: from the ticket of its cause
  add column root_ticket_id bigint references tickets.ticket,  -- Of a ticket in which others stand: the root, where it isn't this one
  add column issue_title text,  -- Title in the tracker where it isn't its own: the root's
  add column issue_severity text,  -- The worst severity of all that stand in it; null: its own
  add column resolved_hour timestamptz;  -- Since when its own finding is over while others that stand in it aren't (UTC)
comment on column tickets.ticket.summary_ticket_id is
'The ticket in whose place in the tracker it stands: of the incident that it belongs to, or the storm''s summary';
comment on column tickets.ticket.cause_ticket_id is 'The ticket of the finding that it follows from';
update tickets.ticket set cause_ticket_id = null;
create index ticket_by_summary on tickets.ticket (summary_ticket_id) where summary_ticket_id is not null;

alter table tickets.change
  add column incident jsonb;  -- What follows, what was refused as following, what changed just before: lists of lines

-- What people said of two findings: never undone by the machine.
create table tickets.bond (
  one text not null,  -- Fingerprint
  other text not null,  -- Fingerprint; the greater of the two
  is_joined boolean not null,  -- One ticket for both; false: two
  who text not null,  -- Who said so
  why text not null,  -- In their words
  said_at timestamptz not null default now(),  -- When (UTC)
  primary key (one, other),
  check (one < other)
);

-- Hours of which causes were weighed.
create table detect.weighing (
  hour timestamptz primary key,  -- Start of the hour (UTC)
  pairs integer not null,  -- Causes and effects that were held against each other and kept
  accepted integer not null,  -- Effects that follow from a cause
  seconds double precision not null,  -- Time it took
  weighed_at timestamptz not null  -- When (UTC)
);

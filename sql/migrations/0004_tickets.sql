-- What was done about it.
create schema tickets;
comment on schema tickets is 'What was done about it: tickets, and the changes still to be told to the tracker.';

-- One ticket per finding and episode.
create table tickets.ticket (
  ticket_id bigint generated always as identity primary key,  -- Our id
  fingerprint text not null,  -- Finding it is about
  detector text not null,  -- Detector id
  resource text not null,  -- The resource, for people
  identity jsonb not null,  -- The columns that identify it
  severity text not null,  -- Severity of the last alarm
  title text not null,  -- Title in the tracker
  state text not null check (state in ('open', 'closed')),  -- As we hold it
  muted text check (muted in ('wont_fix', 'snoozed')),  -- Set by people; a mute keeps it from reopening
  muted_until timestamptz,  -- End of a snooze (UTC)
  opened_hour timestamptz not null,  -- First hour in alarm (UTC)
  last_firing_hour timestamptz not null,  -- Newest hour in alarm (UTC)
  closed_hour timestamptz,  -- Hour whose health closed it (UTC)
  close_reason text,  -- healthy, deleted, person or wont_fix
  previous_ticket_id bigint references tickets.ticket,  -- An older ticket of the same finding
  cause_ticket_id bigint references tickets.ticket,  -- The ticket of its cause
  summary_ticket_id bigint references tickets.ticket,  -- The storm's one ticket that stands for it in the tracker
  touches jsonb not null default '[]',  -- What it is about at other layers; a shared entry links two tickets
  sink text not null,  -- Tracker
  external_key text,  -- Key there; null: not yet filed
  external_url text,  -- Link there
  created_at timestamptz not null default now(),  -- When (UTC)
  updated_at timestamptz not null default now()  -- When (UTC)
);
create unique index ticket_one_open on tickets.ticket (fingerprint) where state = 'open';
create index ticket_by_fingerprint on tickets.ticket (fingerprint, ticket_id);

-- Changes to be told to the tracker: committed before it is called, marked done after.
create table tickets.change (
  change_id bigint generated always as identity primary key,  -- Our id
  ticket_id bigint not null references tickets.ticket,  -- Ticket
  action text not null check (action in ('create', 'comment', 'close', 'reopen')),  -- What to do
  hour timestamptz not null,  -- Hour that led to it (UTC)
  body text not null,  -- Text for people
  matters text,  -- What was told about the alarm, without its figures; the same is told once per ticket
  attempts integer not null default 0,  -- Times it was tried
  error text,  -- Last refusal, one line
  planned_at timestamptz not null default now(),  -- When (UTC)
  attempted_at timestamptz,  -- Last try (UTC)
  done_at timestamptz  -- When the tracker had it (UTC); null: still to do
);
create index change_to_do on tickets.change (change_id) where done_at is null;
create index change_by_ticket on tickets.change (ticket_id, change_id);

-- What was done about findings: tickets, their changes, people's responses.
create schema tickets;
comment on schema tickets is 'What was done about it: tickets, and the changes still to be told to the tracker.';

-- One ticket per finding and episode.
create table tickets.ticket (
  ticket_id bigint generated always as identity primary key,  -- Our id
  fingerprint text not null,  -- Finding it is about
  detector text not null,  -- Detector id
  resource_name text not null,  -- The resource, for people
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
  cause_ticket_id bigint references tickets.ticket,  -- The ticket of the finding that it follows from
  summary_ticket_id bigint references tickets.ticket,  -- The ticket in whose place in the tracker it stands: of the incident that it belongs to, or the storm's summary
  created_at timestamptz not null default now(),  -- When (UTC)
  updated_at timestamptz not null default now(),  -- When (UTC)
  resource text,  -- Key of the thing it is about, e.g. broker:orders-prod/3
  owner text,  -- Who owns the thing; null: nobody is named
  role text not null default 'alone' check (role in ('root', 'follows', 'alone')),  -- root: others follow from it; follows: from the ticket of its cause
  root_ticket_id bigint references tickets.ticket,  -- Of a ticket in which others stand: the root, where it isn't this one
  issue_title text,  -- Title in the tracker where it isn't its own: the root's
  issue_severity text,  -- The worst severity of all that stand in it; null: its own
  resolved_hour timestamptz,  -- Since when its own finding is over while others that stand in it aren't (UTC)
  acknowledged_by text  -- Who works on it, where somebody said so
);
create index ticket_by_fingerprint on tickets.ticket (fingerprint, ticket_id);
create index ticket_by_summary on tickets.ticket (summary_ticket_id) where summary_ticket_id is not null;
create unique index ticket_one_open on tickets.ticket (fingerprint) where state = 'open';

-- Responses of people to findings: on a page, by the command line, or in a tracker.
create table tickets.response (
  response_id bigint generated always as identity primary key,  -- Our id
  fingerprint text not null,  -- Finding
  detector text not null,  -- Detector id
  ticket_id bigint references tickets.ticket,  -- Its ticket then; null: it had none
  verb text not null check (verb in ('acknowledge', 'snooze', 'wont_fix', 'unmute', 'close', 'false_positive', 'comment', 'split', 'link')),  -- The response
  who text not null,  -- Who responded; trackers do not report it
  place text not null,  -- Where: the page, the command line, or the tracker's name in the config
  words text,  -- The reason, or the comment
  until timestamptz,  -- End of a snooze (UTC)
  other text,  -- Fingerprint of the finding that it was linked to
  said_at timestamptz not null default now()  -- When (UTC)
);
create index response_by_finding on tickets.response (fingerprint, response_id);
create index response_false_positive on tickets.response (detector, said_at) where verb = 'false_positive';

-- Manual links and splits of two findings: only people change them.
create table tickets.manual_link (
  one text not null,  -- Fingerprint
  other text not null,  -- Fingerprint; the greater of the two
  is_linked boolean not null,  -- One ticket for both; false: they were split
  response_id bigint not null references tickets.response,  -- What made it so
  primary key (one, other),
  check (one < other)
);

-- What is told to trackers: committed before any of them is called.
create table tickets.change (
  change_id bigint generated always as identity primary key,  -- Our id
  ticket_id bigint not null references tickets.ticket,  -- Ticket
  action text not null check (action in ('create', 'comment', 'close', 'reopen')),  -- What to do
  hour timestamptz not null,  -- Hour that led to it (UTC)
  body text,  -- Text for people, above the finding or alone
  reason text,  -- The because that is told; the same is told once per ticket
  planned_at timestamptz not null default now(),  -- When (UTC)
  finding jsonb,  -- The finding to tell of; each tracker renders it in its own markup
  since timestamptz,  -- First hour in alarm of the finding told (UTC)
  tracker text,  -- The only tracker that is told; null: every one that has the ticket
  incident jsonb,  -- What follows, what was refused as following, what changed just before: lists of lines
  response text check (response in ('acknowledged', 'snoozed'))  -- What people answered elsewhere, for trackers that have a state for it
);
create index change_by_ticket on tickets.change (ticket_id, change_id);

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

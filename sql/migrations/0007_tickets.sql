-- What was done about findings: tickets, their changes, and responses of people.
create schema tickets;
comment on schema tickets is 'What was done about findings: tickets, responses, and changes still to be delivered to trackers.';

-- Tickets: one per finding and episode.
create table tickets.ticket (
  ticket_id bigint generated always as identity primary key,  -- Ticket id
  fingerprint text not null,  -- Finding that it is about
  detector text not null,  -- Detector id
  resource_name text not null,  -- The resource's name
  identity jsonb not null,  -- Columns that identify the resource
  severity text not null,  -- Severity when it last fired
  title text not null,  -- Title in the tracker
  state text not null check (state in ('open', 'closed')),  -- State in Streamwarden
  muted text check (muted in ('wont_fix', 'snoozed')),  -- Set by people; a muted ticket is not reopened
  muted_until timestamptz,  -- End of a snooze (UTC)
  opened_hour timestamptz not null,  -- First firing hour (UTC)
  last_firing_hour timestamptz not null,  -- Newest firing hour (UTC)
  closed_hour timestamptz,  -- Healthy hour that closed it (UTC)
  close_reason text,  -- healthy, deleted, person or wont_fix
  previous_ticket_id bigint references tickets.ticket,  -- Previous ticket of the same finding
  cause_ticket_id bigint references tickets.ticket,  -- Ticket of the finding that caused it
  summary_ticket_id bigint references tickets.ticket,  -- Ticket that represents it in the tracker: the root of its incident, or the summary of an alert storm
  created_at timestamptz not null default now(),  -- When it was created (UTC)
  updated_at timestamptz not null default now(),  -- When it was last updated (UTC)
  resource text,  -- Key of the resource, e.g. broker:orders-prod/3
  owner text,  -- Owner of the resource; null: unassigned
  role text not null default 'alone' check (role in ('root', 'follows', 'alone')),  -- root: cause of others; follows: included in the ticket of its cause
  root_ticket_id bigint references tickets.ticket,  -- Root of its incident, if that is another ticket; only on a ticket that represents others
  issue_title text,  -- Title in the tracker if it is not its own: the root's
  issue_severity text,  -- Highest severity of the tickets that it represents; null: its own
  resolved_hour timestamptz,  -- When its own finding was resolved while others that it represents are firing (UTC)
  acknowledged_by text  -- Who acknowledged it; null: nobody
);
create index ticket_by_fingerprint on tickets.ticket (fingerprint, ticket_id);
create index ticket_by_summary on tickets.ticket (summary_ticket_id) where summary_ticket_id is not null;
create unique index ticket_one_open on tickets.ticket (fingerprint) where state = 'open';

-- Responses of people to findings: from a page, the command line, the API, or a tracker.
create table tickets.response (
  response_id bigint generated always as identity primary key,  -- Response id
  fingerprint text not null,  -- Finding
  detector text not null,  -- Detector id
  ticket_id bigint references tickets.ticket,  -- Ticket at that time; null: it had none
  verb text not null check (verb in ('acknowledge', 'snooze', 'wont_fix', 'unmute', 'close', 'false_positive', 'comment', 'split', 'link')),  -- Response
  who text not null,  -- Who responded; trackers do not report it
  place text not null,  -- Where: the page, the command line, the API, or the tracker's name in the config
  words text,  -- Reason or comment
  until timestamptz,  -- End of a snooze (UTC)
  other text,  -- Fingerprint of the finding that it was linked to
  said_at timestamptz not null default now()  -- When (UTC)
);
create index response_by_finding on tickets.response (fingerprint, response_id);
create index response_false_positive on tickets.response (detector, said_at) where verb = 'false_positive';

-- Manual links and splits of two findings. Only people change them.
create table tickets.manual_link (
  one text not null,  -- Fingerprint
  other text not null,  -- Fingerprint, the greater of the two
  is_linked boolean not null,  -- Whether both share one ticket; false: they were split
  response_id bigint not null references tickets.response,  -- Response that set it
  primary key (one, other),
  check (one < other)
);

-- Changes to deliver to trackers, committed before any tracker is called.
create table tickets.change (
  change_id bigint generated always as identity primary key,  -- Change id
  ticket_id bigint not null references tickets.ticket,  -- Ticket
  action text not null check (action in ('create', 'comment', 'close', 'reopen')),  -- Operation in the tracker
  hour timestamptz not null,  -- Hour that caused it (UTC)
  body text,  -- Text above the finding, or alone
  reason text,  -- Reason (verdict) that it reports; delivered once per ticket
  planned_at timestamptz not null default now(),  -- When it was planned (UTC)
  finding jsonb,  -- The finding; each tracker renders it in its own markup
  since timestamptz,  -- First firing hour of the finding (UTC)
  tracker text,  -- The only tracker to deliver to; null: all trackers that have the ticket
  incident jsonb,  -- Downstream effects, causes that were ruled out, and recent changes: lists of lines
  response text check (response in ('acknowledged', 'snoozed'))  -- Response given elsewhere, for trackers that have a state for it
);
create index change_by_ticket on tickets.change (ticket_id, change_id);

-- Issues: tickets as filed in a tracker.
create table tickets.issue (
  ticket_id bigint not null references tickets.ticket,  -- Ticket
  tracker text not null,  -- The tracker's name in the config
  external_key text,  -- Issue key; null: not filed yet
  external_url text,  -- Issue URL
  state text,  -- State in the tracker: open, acknowledged, snoozed, wont_fix or closed; null: not queried yet
  delivered_change_id bigint not null default 0,  -- Newest delivered change; later changes are delivered in order
  attempts integer not null default 0,  -- Failed deliveries of the next change
  error text,  -- Why the next change is not delivered yet, one line
  attempted_at timestamptz,  -- Last attempt (UTC)
  unsure_at timestamptz,  -- When the next change was sent without a definite response (UTC); null: not pending
  created_at timestamptz not null default now(),  -- When it was created (UTC); people are sent to the ticket's first issue
  primary key (ticket_id, tracker)
);
create index issue_by_key on tickets.issue (tracker, external_key);

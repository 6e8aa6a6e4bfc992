-- What people say of findings, on a page, by the command line or in a tracker, is kept with who said it and when.
create table tickets.answer (
  response_id bigint generated always as identity primary key,  -- Our id
  fingerprint text not null,  -- Finding
  detector text not null,  -- Detector id
  ticket_id bigint references tickets.ticket,  -- Its ticket then; null: it had none
  verb text not null,  -- What was said
  who text not null,  -- Who said so; a tracker doesn't tell it
  place text not null,  -- Where: the page, the command line, or the tracker's name in the config
  words text,  -- Why, or the comment, in their words
  until timestamptz,  -- End of a snooze (UTC)
  other text,  -- Fingerprint of the finding that it was joined with
  said_at timestamptz not null default now(),  -- When (UTC)
  check (verb in ('acknowledge', 'snooze', 'wont_fix', 'unmute', 'close', 'wrong', 'comment', 'split', 'join'))
);
create index answer_by_finding on tickets.answer (fingerprint, response_id);
create index answer_wrong on tickets.answer (detector, said_at) where verb = 'wrong';

-- Who said so, why and when stands in the answer that made a bond. Old bonds were said by the command line.
alter table tickets.bond
  add column response_id bigint references tickets.answer;  -- What made it so
with told as (
  insert into tickets.answer (fingerprint, detector, ticket_id, verb, who, place, words, other, said_at)
  select
    b.one,
    coalesce(t.detector, ''),
    t.ticket_id,
    case when b.is_joined then 'join' else 'split' end,
    b.who,
    'the command line',
    b.why,
    b.other,
    b.said_at
  from tickets.bond as b
  left join lateral (
    select n.ticket_id, n.detector from tickets.ticket as n where n.fingerprint = b.one order by n.ticket_id desc limit 1
  ) as t on true
  returning response_id, fingerprint, other
)

update tickets.bond as b set response_id = told.response_id
from told
where told.fingerprint = b.one and told.other = b.other;
alter table tickets.bond
  alter column response_id set not null,
  drop column who,
  drop column why,
  drop column said_at;

alter table tickets.ticket
  add column acknowledged_by text;  -- Who works on it, where somebody said so
update tickets.ticket as t set acknowledged_by = 'a person in ' || i.tracker
from tickets.issue as i
where i.ticket_id = t.ticket_id and i.state = 'acknowledged';

alter table tickets.change
  add column answer text check (answer in ('acknowledged', 'snoozed'));  -- What people answered elsewhere, for trackers that have a state for it

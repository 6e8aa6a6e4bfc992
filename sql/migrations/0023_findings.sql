-- A finding is a thing, a because and figures; words come last. Who owns what, and whom a rule leaves out.
drop function tickets.related(bigint);

-- What a detector said of a thing in an hour (its last run).
alter table detect.evaluation rename column evidence to figures;
alter table detect.evaluation
  alter column severity drop not null,
  add column thing text,  -- Key of the thing it is about, e.g. broker:orders-prod/3
  add column owner text,  -- Who owns the thing; null: nobody is named
  add column application text,  -- Application that the thing belongs to
  add column because text,  -- Which case of the detector it is; a ticket is told again when this or the severity changes
  add column cure text,  -- What to do about it, as it was rendered then
  add column commands jsonb not null default '[]',  -- Lines to paste into a shell
  add column convinces jsonb not null default '[]',  -- The few figures that convince, in their order
  add column affected jsonb not null default '[]',  -- Parts of the thing that are hit: keys, or {topic, partition}
  add column is_not_applicable boolean not null default false;  -- A skip that isn't for want of data: a detached volume, say
comment on column detect.evaluation.figures is 'The detector''s figures, raw, in its order';
comment on column detect.evaluation.severity is 'Severity of an alarm; null: it is none';
update detect.evaluation set cure = figures ->> 'advice' where figures ->> 'advice' is not null;
update detect.evaluation set is_not_applicable = true where (figures ->> 'is_not_applicable')::boolean;

-- Who owns what, by patterns of the config; the first that matches counts.
create table detect.owner (
  position integer primary key,  -- Order in the config
  key_pattern text not null,  -- Regular expression on a thing's key
  owner text not null  -- Who gets the tickets
);

-- What the config's exceptions of detectors matched, to tell those that match nothing.
create table detect.exception (
  detector text not null,  -- Detector id
  rule text not null,  -- The exception as the config has it, JSON
  first_hour timestamptz not null,  -- Hour that knew it first (UTC)
  last_hour timestamptz not null,  -- Newest hour judged with it (UTC)
  matched_hour timestamptz,  -- Newest hour in which it matched something (UTC)
  things integer not null,  -- Things that it matched in the newest hour
  primary key (detector, rule)
);

alter table tickets.ticket drop column touches;
alter table tickets.ticket
  add column thing text,  -- Key of the thing it is about, e.g. broker:orders-prod/3
  add column owner text;  -- Who owns the thing; null: nobody is named

alter table tickets.change rename column matters to because;
alter table tickets.change alter column body drop not null;
alter table tickets.change
  add column finding jsonb,  -- The finding to tell of; each tracker renders it in its own markup
  add column since timestamptz;  -- First hour in alarm of the finding told (UTC)
comment on column tickets.change.because is 'The because that is told; the same is told once per ticket';
comment on column tickets.change.body is 'Text for people, above the finding or alone';
update tickets.change set because = null;

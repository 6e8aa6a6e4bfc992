-- What was evaluated, and what came of it.
create schema detect;
comment on schema detect is 'What was judged, and on what ground: loads, coverage, evaluations.';

-- Which firing finding may have caused which, per hour.
create table detect.cause (
  hour timestamptz not null,  -- Start of the hour (UTC)
  effect text not null,  -- Fingerprint of the firing finding
  cause text not null,  -- Fingerprint of the finding that may have caused it
  mechanism text not null,  -- Key of sql/mechanisms.yaml
  strength double precision not null,  -- Product of the five factors, 0 to 1; docs/causes.md has the thresholds
  is_accepted boolean not null,  -- The effect follows from this cause; at most one cause of an effect is accepted
  is_possible boolean not null,  -- The effect may follow from this cause; otherwise the cause is ruled out
  place_factor double precision not null,  -- 1; less where the topology comes from an earlier hour
  time_factor double precision not null,  -- 1; 0 where the cause began after the effect or cleared too long before
  share_factor double precision not null,  -- Share of the affected parts that the place explains, against coincidence
  peers_factor double precision not null,  -- How peers at the same place and elsewhere fare
  amount_factor double precision,  -- Share of the effect that the cause accounts for; null: not measured
  path text[] not null,  -- Keys of the resources from the cause to the place where it acts
  seen_hour timestamptz not null,  -- Hour of the topology (UTC)
  message text not null,  -- Evidence, in one sentence
  metrics jsonb not null,  -- Inputs of the factors
  weighed_at timestamptz not null,  -- When (UTC)
  primary key (hour, effect, cause)
) partition by range (hour);

-- What each source was asked and whether it answered, per hour and resource. Missing is not healthy.
create table detect.coverage (
  hour timestamptz not null,  -- Start of the hour (UTC)
  app text not null,  -- Spark app that asked
  source text not null,  -- Source: cloudwatch, ec2, jolokia, kafka_offsets, …
  resource_name text not null,  -- What was asked for; `metrics of …`: which metrics an endpoint's exporter exposes
  status text not null,  -- answered, late, refused or missing
  message text,  -- Why, where it isn't `answered`
  asked_at timestamptz not null,  -- When (UTC)
  primary key (hour, app, source, resource_name)
) partition by range (hour);

-- The detectors as they were when last run: header fields for people who ask in SQL.
create table detect.detector (
  detector text primary key,  -- Detector id
  title text not null,  -- One line for people
  severity text not null,  -- critical, warning or info
  maturity text not null,  -- experimental or stable
  owner text not null,  -- Who keeps it
  header jsonb not null,  -- The whole header
  sql_checksum text not null,  -- SHA-256 of the file
  loaded_at timestamptz not null  -- When (UTC)
);

-- What a detector said of a resource in an hour (its last run).
create table detect.evaluation (
  hour timestamptz not null,  -- Start of the hour (UTC)
  detector text not null,  -- Detector id
  fingerprint text not null,  -- SHA-256 of detector and identity: never of a value or the severity
  resource_name text not null,  -- The resource, for people
  identity jsonb not null,  -- The columns that identify it
  status text not null check (status in ('firing', 'ok', 'unknown')),  -- alarm, ok, or skip: can't be judged
  severity text,  -- Severity of an alarm; null: it is none
  message text not null,  -- One sentence for people
  metrics json not null,  -- The detector's figures, raw, in its order
  evaluated_at timestamptz not null,  -- When (UTC)
  resource text,  -- Key of the thing it is about, e.g. broker:orders-prod/3
  owner text,  -- Who owns the thing; null: nobody is named
  application text,  -- Application that the thing belongs to
  reason text,  -- Which case of the detector it is; a ticket is told again when this or the severity changes
  details jsonb not null default '[]',  -- Further evidence, a list of sentences
  impact text,  -- What happens to whom if nothing is done, as it was rendered then; null: it is not firing
  actions jsonb not null default '[]',  -- What to do, in order, as it was rendered then
  commands jsonb not null default '[]',  -- Lines to paste into a shell
  key_metrics jsonb not null default '[]',  -- The few figures that convince, in their order
  affected jsonb not null default '[]',  -- Parts of the thing that are hit: keys, or {topic, partition}
  is_not_applicable boolean not null default false,  -- A skip that isn't for want of data: a detached volume, say
  primary key (hour, detector, fingerprint)
) partition by range (hour);
create index evaluation_by_fingerprint on detect.evaluation (fingerprint, hour);
create index evaluation_not_ok on detect.evaluation (hour, detector, status) where status <> 'ok';

-- What the config's exceptions of detectors matched, to tell those that match nothing.
create table detect.exception (
  detector text not null,  -- Detector id
  rule text not null,  -- The exception as the config has it, JSON
  first_hour timestamptz not null,  -- Hour that knew it first (UTC)
  last_hour timestamptz not null,  -- Newest hour judged with it (UTC)
  matched_hour timestamptz,  -- Newest hour in which it matched something (UTC)
  resources integer not null,  -- Things that it matched in the newest hour
  primary key (detector, rule)
);

-- One judging of an hour by a detector (its last run).
create table detect.detector_run (
  hour timestamptz not null,  -- Start of the hour (UTC)
  detector text not null,  -- Detector id
  status text not null,  -- judged, blocked (its tables weren't loaded) or failed
  message text,  -- Why it is blocked or failed
  sql_checksum text not null,  -- SHA-256 of the detector's file
  params jsonb not null,  -- Parameters in force
  firing integer not null,  -- Resources in alarm
  ok integer not null,  -- Healthy resources
  unknown integer not null,  -- Resources that couldn't be judged
  seconds double precision not null,  -- Time it took
  evaluated_at timestamptz not null,  -- When (UTC)
  primary key (hour, detector)
) partition by range (hour);
create index detector_run_by_detector on detect.detector_run (detector, hour);

-- How soon applications are to have processed a record, by patterns of the config; the first that matches counts.
create table detect.latency_target (
  position integer primary key,  -- Order in the config
  key_pattern text not null,  -- Regular expression on an application's key
  seconds double precision not null  -- From a record's timestamp to the end of its way
);

-- What each app loaded for an hour (its last run).
create table detect.load (
  hour timestamptz not null,  -- Start of the hour (UTC)
  app text not null,  -- Spark app
  status text not null,  -- loaded or failed
  rows jsonb not null,  -- Rows by table
  error text,  -- Why it failed, one line
  started_at timestamptz not null,  -- Start of the run (UTC)
  finished_at timestamptz not null,  -- End of the run (UTC)
  primary key (hour, app)
) partition by range (hour);

-- Who owns what, by patterns of the config; the first that matches counts.
create table detect.owner (
  position integer primary key,  -- Order in the config
  key_pattern text not null,  -- Regular expression on a thing's key
  owner text not null  -- Who gets the tickets
);

-- Findings that are in alarm, or were until their newest hour, and since when. Kept up to date by a trigger of evaluation.
create table detect.open_finding (
  fingerprint text primary key,  -- Finding
  detector text not null,  -- Detector id
  since_hour timestamptz not null,  -- First hour in alarm without a healthy hour since, the newest apart (UTC)
  is_ok boolean not null  -- Whether its newest hour is healthy
);

-- Hours of which causes were weighed.
create table detect.weighing (
  hour timestamptz primary key,  -- Start of the hour (UTC)
  pairs integer not null,  -- Causes and effects that were held against each other and kept
  accepted integer not null,  -- Effects that follow from a cause
  seconds double precision not null,  -- Time it took
  weighed_at timestamptz not null  -- When (UTC)
) partition by range (hour);

-- What was judged, and on what ground.
create schema detect;
comment on schema detect is 'What was judged, and on what ground: loads, coverage, evaluations.';

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
);

-- What each source was asked and whether it answered, per hour and resource. Missing is not healthy.
create table detect.coverage (
  hour timestamptz not null,  -- Start of the hour (UTC)
  app text not null,  -- Spark app that asked
  source text not null,  -- Source: cloudwatch, ec2, jolokia, kafka_offsets, …
  resource text not null,  -- What was asked for
  status text not null,  -- answered, late, refused or missing
  reason text,  -- Why, where it isn't `answered`
  asked_at timestamptz not null,  -- When (UTC)
  primary key (hour, app, source, resource)
);

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

-- One judging of an hour by a detector (its last run).
create table detect.judgement (
  hour timestamptz not null,  -- Start of the hour (UTC)
  detector text not null,  -- Detector id
  status text not null,  -- judged, blocked (its tables weren't loaded) or failed
  reason text,  -- Why it is blocked or failed
  sql_checksum text not null,  -- SHA-256 of the detector's file
  params jsonb not null,  -- Parameters in force
  alarms integer not null,  -- Resources in alarm
  oks integer not null,  -- Healthy resources
  skips integer not null,  -- Resources that couldn't be judged
  seconds double precision not null,  -- Time it took
  evaluated_at timestamptz not null,  -- When (UTC)
  primary key (hour, detector)
);

-- What a detector said of a resource in an hour (its last run).
create table detect.evaluation (
  hour timestamptz not null,  -- Start of the hour (UTC)
  detector text not null,  -- Detector id
  fingerprint text not null,  -- SHA-256 of detector and identity: never of a value or the severity
  resource text not null,  -- The resource, for people
  identity jsonb not null,  -- The columns that identify it
  status text not null check (status in ('alarm', 'ok', 'skip')),  -- alarm, ok, or skip: can't be judged
  severity text not null,  -- Severity in force for this row
  reason text not null,  -- One sentence for people
  evidence json not null,  -- The other columns of the detector's row, in its order
  evaluated_at timestamptz not null,  -- When (UTC)
  primary key (hour, detector, fingerprint)
) partition by range (hour);
create index evaluation_by_fingerprint on detect.evaluation (fingerprint, hour);

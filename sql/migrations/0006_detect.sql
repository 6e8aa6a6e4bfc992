-- What was evaluated, and what came of it.
create schema detect;
comment on schema detect is 'Evaluations of detectors and the data behind them: loads, coverage, runs, causes.';

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

-- Response of each source, per hour and resource. Missing data is not healthy.
create table detect.coverage (
  hour timestamptz not null,  -- Start of the hour (UTC)
  app text not null,  -- Spark app that queried it
  source text not null,  -- Source: cloudwatch, ec2, jolokia, kafka_offsets, …
  resource_name text not null,  -- Resource that was queried; `metrics of …`: the metrics that an endpoint's exporter exposes
  status text not null,  -- complete, late, failed, or missing
  message text,  -- Why the status is not `complete`; null: complete
  queried_at timestamptz not null,  -- When it was queried (UTC)
  primary key (hour, app, source, resource_name)
) partition by range (hour);

-- The detectors as of their last run: header fields for queries in SQL.
create table detect.detector (
  detector text primary key,  -- Detector id
  title text not null,  -- Title
  severity text not null,  -- critical, warning or info
  maturity text not null,  -- experimental or stable
  owner text not null,  -- Maintainer
  header jsonb not null,  -- The whole header
  sql_checksum text not null,  -- SHA-256 of the file
  loaded_at timestamptz not null  -- When (UTC)
);

-- Evaluation of a resource by a detector in an hour (its last run).
create table detect.evaluation (
  hour timestamptz not null,  -- Start of the hour (UTC)
  detector text not null,  -- Detector id
  fingerprint text not null,  -- SHA-256 of the detector id and the identity; measured values and the severity are not part of it
  resource_name text not null,  -- The resource's name
  identity jsonb not null,  -- Columns that identify the resource
  status text not null check (status in ('firing', 'ok', 'unknown')),  -- firing, ok, or unknown (not evaluated)
  severity text,  -- Severity; null: not firing
  message text not null,  -- Message, in one sentence
  metrics json not null,  -- Metrics of the detector, unformatted, in its order
  evaluated_at timestamptz not null,  -- When (UTC)
  resource text,  -- Key of the resource, e.g. broker:orders-prod/3
  owner text,  -- Owner of the resource; null: unassigned
  application text,  -- Application that the resource belongs to
  reason text,  -- Verdict of the detector; a ticket is updated when this or the severity changes
  details jsonb not null default '[]',  -- Further evidence, a list of sentences
  impact text,  -- Impact as rendered in that hour; null: not firing
  actions jsonb not null default '[]',  -- Recommended actions, in order, as rendered in that hour
  commands jsonb not null default '[]',  -- Commands to paste into a shell
  key_metrics jsonb not null default '[]',  -- Key metrics, in order
  affected jsonb not null default '[]',  -- Affected parts of the resource: keys, or {topic, partition}
  is_not_applicable boolean not null default false,  -- Whether the detector does not apply to the resource (a detached volume, for example): unknown, but no data is missing
  primary key (hour, detector, fingerprint)
) partition by range (hour);
create index evaluation_by_fingerprint on detect.evaluation (fingerprint, hour);
create index evaluation_not_ok on detect.evaluation (hour, detector, status) where status <> 'ok';

-- What the exceptions in the config matched; shows exceptions that match nothing.
create table detect.exception (
  detector text not null,  -- Detector id
  rule text not null,  -- The exception as written in the config, JSON
  first_hour timestamptz not null,  -- First hour that was evaluated with it (UTC)
  last_hour timestamptz not null,  -- Newest hour that was evaluated with it (UTC)
  matched_hour timestamptz,  -- Newest hour in which it matched a resource (UTC)
  resources integer not null,  -- Resources that it matched in the newest hour
  primary key (detector, rule)
);

-- Evaluation of an hour by a detector (its last run).
create table detect.detector_run (
  hour timestamptz not null,  -- Start of the hour (UTC)
  detector text not null,  -- Detector id
  status text not null,  -- evaluated, blocked (its tables were not loaded), or failed
  message text,  -- Why it is blocked or failed
  sql_checksum text not null,  -- SHA-256 of the detector's file
  params jsonb not null,  -- Parameters in force
  firing integer not null,  -- Resources with a firing finding
  ok integer not null,  -- Healthy resources
  unknown integer not null,  -- Resources that could not be evaluated
  seconds double precision not null,  -- Run time
  evaluated_at timestamptz not null,  -- When (UTC)
  primary key (hour, detector)
) partition by range (hour);
create index detector_run_by_detector on detect.detector_run (detector, hour);

-- Latency targets of applications, by patterns of the config; the first match counts.
create table detect.latency_target (
  position integer primary key,  -- Order in the config
  key_pattern text not null,  -- Regular expression on an application's key
  seconds double precision not null  -- Maximum time from a record's timestamp until it is processed
);

-- Rows that each app loaded for an hour (its last run).
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

-- Owners of resources, by patterns of the config; the first match counts.
create table detect.owner (
  position integer primary key,  -- Order in the config
  key_pattern text not null,  -- Regular expression on a resource's key
  owner text not null  -- Owner: the assignee of tickets
);

-- Turns of hourly runs: scheduled runs and backfills wait for those that came before them.
create table detect.run_turn (
  run_id text primary key,  -- Run id of the DAG `hourly`
  requested_at timestamptz not null  -- When it was ready to gather (UTC); the earliest active run has its turn
);

-- Findings that are firing or were firing until their newest hour, and since when. A trigger of evaluation maintains it.
create table detect.open_finding (
  fingerprint text primary key,  -- Finding
  detector text not null,  -- Detector id
  since_hour timestamptz not null,  -- First firing hour without a healthy hour since, except the newest (UTC)
  is_ok boolean not null  -- Whether it is healthy in its newest hour
);

-- Resources as of the newest hour, stored by the step `causes`: the view `resource` computes them, which takes too long for pages.
create table detect.resource (
  key text primary key,  -- Key, the same everywhere, e.g. broker:orders-prod/3
  kind text not null,  -- As in the view resource
  name text not null,  -- Short name
  cluster text,  -- Kafka cluster; null for AWS resources
  application text,  -- Application that it belongs to
  owner text,  -- Owner; null: unassigned
  seen_hour timestamptz not null,  -- Newest hour in which it was seen (UTC)
  as_of timestamptz not null,  -- Hour for which all rows were stored (UTC)
  search_text text not null generated always as (lower(name || ' ' || key || coalesce(' ' || owner, '') || coalesce(' ' || application, ''))) stored  -- What the search compares words with, in lower case
);

-- Dependencies between resources as of the same hour, from the view `resource_link`.
create table detect.resource_link (
  upstream text not null,  -- Key of the resource that can affect the other
  downstream text not null,  -- Key of the resource that can be affected
  basis text not null,  -- Kind of dependency: attached, runs on, leads, read by, …
  seen_hour timestamptz not null,  -- Newest hour with the dependency (UTC)
  primary key (upstream, downstream, basis)
);
create index resource_link_by_downstream on detect.resource_link (downstream);

-- Backtests requested on a detector's page: queued, running, and the newest finished ones of each detector.
create table detect.backtest (
  backtest_id bigint generated always as identity primary key,  -- Backtest id
  detector text not null,  -- Detector id
  params jsonb not null,  -- Tried parameters that differ from those in force
  who text not null,  -- Login that requested it
  requested_at timestamptz not null,  -- When it was requested (UTC)
  started_at timestamptz,  -- When it was started (UTC); null: queued
  finished_at timestamptz,  -- When it ended (UTC); null: queued or running
  result jsonb,  -- Numbers of tickets and hours in force and as tried, and the tickets that differ; null: not finished, or failed
  message text  -- Why it failed, in one sentence; null: it did not
);
create index backtest_by_detector on detect.backtest (detector, backtest_id);

-- Hours for which causes were weighed.
create table detect.weighing (
  hour timestamptz primary key,  -- Start of the hour (UTC)
  pairs integer not null,  -- Pairs of cause and effect that were kept
  accepted integer not null,  -- Effects with an accepted cause
  seconds double precision not null,  -- Run time
  weighed_at timestamptz not null  -- When (UTC)
) partition by range (hour);

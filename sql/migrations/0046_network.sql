-- What EC2 instances send and receive, against what their type sustains and reaches in a burst.
create table metrics.instance_network_sample (
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  instance_id text not null,  -- EC2 instance id
  at timestamptz not null,  -- Start of the period (UTC)
  period_seconds integer not null,  -- Seconds that the bytes were counted in: 300 with basic monitoring
  in_bytes double precision,  -- NetworkIn
  out_bytes double precision,  -- NetworkOut
  primary key (account, region, instance_id, at)
) partition by range (at);

create table metrics.instance_network_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  instance_id text not null,  -- EC2 instance id
  direction text not null,  -- in or out: each has limits of its own
  instance_type text,  -- Type, e.g. m5.large
  baseline_bytes_per_second double precision,  -- What the type sustains; null: EC2 doesn't tell
  peak_bytes_per_second double precision,  -- What it reaches in a burst
  minutes_expected integer not null,  -- Minutes of the hour that could be known when it was read
  minutes_present integer,  -- Minutes that are known; null: CloudWatch didn't answer
  bytes_per_second_mean double precision,  -- Bytes per second, mean
  bytes_per_second_p99 double precision,  -- Bytes per second, 99th percentile of its periods
  bytes_per_second_max double precision,  -- Bytes per second, largest period
  bytes_per_second_now double precision,  -- Bytes per second, mean of the last 15 minutes
  minutes_above_baseline integer,  -- Minutes in which it did more than 1.05 of the baseline
  minutes_at_peak integer,  -- Minutes in which it did at least 0.95 of the peak
  minutes_above_lately integer,  -- Of the last 15 minutes those above the baseline
  minutes_at_baseline_lately integer,  -- Of the last 15 minutes those within 0.95 and 1.05 of the baseline
  primary key (hour, account, region, instance_id, direction)
) partition by range (hour);
comment on table metrics.instance_network_hourly is
'An hour of an EC2 instance''s network, in each direction, against what its type gives.';

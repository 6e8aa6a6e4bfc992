-- Metrics of EBS volumes, EC2 instances, and hosts.
create schema metrics;
comment on schema metrics is 'What was measured: samples, partitioned by day, and hourly facts.';

-- What an hour's reading of CloudWatch cost.
create table metrics.cloudwatch_cost_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  app text not null,  -- Spark app that asked
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  calls integer not null,  -- GetMetricData requests, with those that were repeated
  metrics_asked integer not null,  -- Metrics asked, which AWS bills
  primary key (hour, app, account, region)
) partition by range (hour);

-- An hour of a machine's file system by its node exporter: metrics.node_hourly names only the fullest.
create table metrics.file_system_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster that the machine belongs to, or whose applications it runs
  endpoint text not null,  -- Address of the machine's page
  mountpoint text not null,  -- Where it is mounted
  device text not null,  -- Device it lies on; one that is mounted at several places has a row for each
  fstype text not null,  -- ext4, xfs, …; none of memory and images (tmpfs, squashfs, …)
  instance_id text,  -- EC2 instance that the machine is
  size_bytes double precision not null,  -- Size, newest sample
  available_bytes double precision,  -- What is left on it for users other than root, newest sample
  available_min_bytes double precision,  -- The same, least sample
  read_only boolean,  -- Whether it can't be written; null: the exporter doesn't tell
  primary key (hour, cluster, endpoint, mountpoint)
) partition by range (hour);

-- EC2's status checks of an instance, and the group of instances that it belongs to.
create table metrics.instance_health_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  instance_id text not null,  -- EC2 instance id
  instance_group text not null,  -- Auto Scaling group, else tag application, else instance id
  scaling_group text,  -- Auto Scaling group (tag aws:autoscaling:groupName)
  application text,  -- Tag application
  state text,  -- running, stopped, terminated, …
  is_spot boolean,  -- Whether AWS may take it back at any time
  launched_at timestamptz,  -- Launch time
  observed_at timestamptz not null,  -- When it was asked
  activities_known boolean not null,  -- Whether Auto Scaling told the activities of this hour in its region
  minutes_checked integer,  -- Minutes with a status check; null: CloudWatch didn't answer
  minutes_instance_failed integer,  -- Minutes in which its own check failed: its system doesn't answer
  minutes_system_failed integer,  -- Minutes in which the check of AWS's hardware under it failed
  minutes_volumes_failed integer,  -- Minutes in which its volumes couldn't be reached
  failing_since timestamptz,  -- Since when a check has failed without a pause, up to the last that is known; null: the last passed
  is_burstable boolean,  -- Whether its type earns CPU credits (T2, T3, T4g)
  cpu_credits double precision,  -- CPUCreditBalance, the latest of the hour: minutes of a whole vCPU; null: not told
  cpu_credits_most double precision,  -- CPUCreditBalance, the highest of the hour
  cpu_credits_borrowed double precision,  -- CPUSurplusCreditBalance, the latest: what it has borrowed, and may still earn back
  cpu_credits_charged double precision,  -- CPUSurplusCreditsCharged: what was borrowed in the hour for money
  primary key (hour, account, region, instance_id)
) partition by range (hour);

-- An hour of an instance.
create table metrics.instance_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  instance_id text not null,  -- EC2 instance id
  minutes_expected integer not null,  -- Minutes of the hour that could be known when it was read
  minutes_present integer,  -- Minutes for which CPU is known; null: CloudWatch didn't answer
  cpu_mean_percent double precision,  -- CPU, mean
  cpu_max_percent double precision,  -- CPU, largest minute
  memory_used_mean_percent double precision,  -- System memory in use, mean
  memory_used_max_percent double precision,  -- System memory in use, largest minute
  disk_used_max_percent double precision,  -- Fullest file system
  ebs_io_balance_min_percent double precision,  -- Lowest EBSIOBalance%
  ebs_byte_balance_min_percent double precision,  -- Lowest EBSByteBalance%
  minutes_ebs_limited integer,  -- Minutes in which the instance's EBS limits bound
  primary key (hour, account, region, instance_id)
) partition by range (hour);

-- An hour of an EC2 instance's network, in each direction, against what its type gives.
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
  minutes_allowance_exceeded integer,  -- Minutes in which AWS queued or dropped packets beyond the instance's allowances (bandwidth, packets, tracked connections); null: only MSK exposes it
  primary key (hour, account, region, instance_id, direction)
) partition by range (hour);

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

-- CloudWatch AWS/EC2 and CWAgent, one row per instance and period.
create table metrics.instance_sample (
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  instance_id text not null,  -- EC2 instance id
  at timestamptz not null,  -- Start of the period (UTC)
  period_seconds integer not null,  -- Length of the period
  cpu_percent double precision,  -- CPUUtilization
  memory_used_percent double precision,  -- CWAgent mem_used_percent
  disk_used_percent double precision,  -- CWAgent disk_used_percent, fullest file system
  ebs_io_balance_percent double precision,  -- EBSIOBalance%: the instance's own I/O credits
  ebs_byte_balance_percent double precision,  -- EBSByteBalance%: the instance's own throughput credits
  ebs_iops_exceeded double precision,  -- InstanceEBSIOPSExceededCheck: 1 when the instance's IOPS bound
  ebs_throughput_exceeded double precision,  -- InstanceEBSThroughputExceededCheck: 1 when its throughput bound
  primary key (account, region, instance_id, at)
) partition by range (at);

-- An hour of a machine by its node exporter.
create table metrics.node_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster it belongs to, or whose applications it runs
  endpoint text not null,  -- Address of its page
  instance_id text,  -- EC2 instance it is
  booted_at timestamptz,  -- When it was started
  samples integer,  -- Times it answered in this run; null: never
  covered_seconds double precision,  -- Seconds that the counts behind the rates below cover
  memory_bytes double precision,  -- Memory of the machine
  memory_used_mean_percent double precision,  -- Memory that isn't available, mean of the samples; page cache is available
  memory_used_max_percent double precision,  -- The same, largest sample
  page_cache_bytes double precision,  -- Page cache, least sample
  load_1m_max double precision,  -- Processes that run or wait (1-minute load), largest sample
  cpu_ratio double precision,  -- Share of the processors' time that was used, mean
  iowait_ratio double precision,  -- Share of the processors' time that was idle because of disks, mean
  disk_read_bytes_per_second double precision,  -- Bytes read from all disks per second
  disk_written_bytes_per_second double precision,  -- Bytes written to all disks per second
  disk_reads_per_second double precision,  -- Reads of all disks per second
  disk_writes_per_second double precision,  -- Writes of all disks per second
  busiest_disk text,  -- Disk that was busy most
  busiest_disk_ratio double precision,  -- Share of the time that it was busy
  fullest_file_system text,  -- Mount point of the fullest file system
  fullest_file_system_percent double precision,  -- How full it is
  fullest_file_system_available_bytes double precision,  -- What is left on it
  steal_ratio double precision,  -- Share of the processors' time that the hypervisor gave to others, mean; cpu_ratio has it too
  primary key (hour, cluster, endpoint)
) partition by range (hour);

-- Readings of node exporters by our metric names (spark_apps/sources/jmx_catalog.py). Counters are kept as they are read.
create table metrics.node_sample (
  hour timestamptz not null,  -- The hour it was read for (UTC)
  cluster text not null,  -- Kafka cluster it belongs to, or whose applications it runs
  endpoint text not null,  -- Address of its page, without credentials
  metric text not null,  -- Our name of the metric, with its unit
  labels text not null,  -- What it is of: JSON object with sorted keys, {} for the whole machine
  at timestamptz not null,  -- When it was read (UTC)
  kind text not null,  -- counter or gauge
  value double precision,  -- Reading; null: the page said NaN
  process_started_at timestamptz,  -- When the machine was started: a counter began at 0 then
  primary key (hour, cluster, endpoint, metric, labels, at)
) partition by range (hour);

-- What Auto Scaling did with instances: that one was taken out of service, and why, no metric tells.
create table metrics.scaling_activity_hourly (
  hour timestamptz not null,  -- Hour in which it began (UTC)
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  activity_id text not null,  -- Scaling activity
  scaling_group text not null,  -- Auto Scaling group
  instance_id text,  -- EC2 instance that it launches or terminates; null: its description names none
  is_termination boolean not null,  -- Whether it takes the instance away
  description text,  -- In AWS's words: what it does
  cause text,  -- In AWS's words: why
  status text,  -- InProgress, Successful, Failed, Cancelled, …
  started_at timestamptz not null,  -- When it began
  ended_at timestamptz,  -- When it ended; null: it hadn't when it was asked
  primary key (hour, account, region, activity_id)
) partition by range (hour);

-- An hour of a volume: its load, its limits and its bucket. Made from volume_sample and the inventory.
create table metrics.volume_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  volume_id text not null,  -- EBS volume id
  known_until timestamptz not null,  -- End of what CloudWatch had settled when it was read
  minutes_expected integer not null,  -- Minutes of the hour that could be known when it was read
  minutes_present integer,  -- Minutes for which operations are known; null: CloudWatch didn't answer
  minutes_balance integer,  -- Minutes for which BurstBalance is known; null: CloudWatch didn't answer
  iops_mean double precision,  -- Operations per second, mean
  iops_p95 double precision,  -- 95th percentile of the minutes
  iops_p99 double precision,  -- 99th percentile of the minutes
  iops_max double precision,  -- Largest minute
  iops_now double precision,  -- Mean of the last 15 minutes known
  busy_iops_p95 double precision,  -- 95th percentile of ops / (period - idle time): what micro-bursts really ask
  bytes_per_second_mean double precision,  -- Bytes per second, mean
  bytes_per_second_p95 double precision,  -- 95th percentile of the minutes
  bytes_per_second_p99 double precision,  -- 99th percentile of the minutes
  bytes_per_second_max double precision,  -- Largest minute
  bytes_per_second_now double precision,  -- Mean of the last 15 minutes known
  read_bytes double precision,  -- Bytes read in the hour
  write_bytes double precision,  -- Bytes written in the hour
  queue_length_mean double precision,  -- Operations waiting, mean
  queue_length_max double precision,  -- Operations waiting, largest minute
  read_latency_ms double precision,  -- Mean time of a read
  write_latency_ms double precision,  -- Mean time of a write
  baseline_iops double precision,  -- IOPS the volume sustains for ever
  burst_iops double precision,  -- IOPS it reaches with credits (the maximum where there is no bucket)
  baseline_bytes_per_second double precision,  -- Bytes per second it sustains for ever
  burst_bytes_per_second double precision,  -- Bytes per second it reaches with credits
  bucket_credits double precision,  -- Credits of a full bucket: operations for gp2, bytes for st1 and sc1; null: no bucket
  burst_balance_min_percent double precision,  -- Lowest BurstBalance of the hour
  burst_balance_last_percent double precision,  -- Last BurstBalance of the hour
  modelled_balance_last_percent double precision,  -- The same by our own model of the bucket, from operations alone
  credits_per_hour double precision,  -- Credits won per hour at the load of the last 15 minutes (negative: the bucket empties)
  hours_to_exhaustion double precision,  -- Hours until the bucket is empty at that load, 0 when it is; null: it doesn't empty
  hours_to_exhaustion_low double precision,  -- The same at the 90th percentile of the hour's minutes
  hours_to_exhaustion_high double precision,  -- The same at their 10th percentile, where that empties the bucket too
  minutes_empty integer,  -- Minutes with a bucket of at most 1 %
  minutes_at_iops_limit integer,  -- Minutes in which the volume's IOPS bound
  minutes_at_throughput_limit integer,  -- Minutes in which the volume's throughput bound
  minutes_at_instance_limit integer,  -- Minutes in which the instance's EBS limits bound
  minutes_stalled integer,  -- Minutes with stalled I/O
  minutes_throttled integer,  -- Minutes in which any of these limits bound
  throttled_since timestamptz,  -- Since when it has been throttled without a pause of 10 minutes; null: it isn't
  demand_iops_p95 double precision,  -- 95th percentile of what it did; of volumes held back over the last day as well
  demand_iops_p99 double precision,  -- 99th percentile of the same
  demand_bytes_per_second_p95 double precision,  -- 95th percentile of bytes per second, likewise
  demand_bytes_per_second_p99 double precision,  -- 99th percentile of the same
  demand_hours double precision,  -- Hours behind these four figures
  read_baseline_bytes_per_second double precision,  -- Usual read rate at this hour of the week (median); brokers' volumes
  read_baseline_mad_bytes_per_second double precision,  -- Median absolute deviation of the same
  read_baseline_hours integer,  -- Hours of history behind the baseline
  read_baseline_kind text,  -- hour_of_week, or all_hours while there is too little history
  minutes_draining integer,  -- Of the last 15 minutes, those that took more than the bucket earns; null: it has none
  latency_p05_ms double precision,  -- Time of a request in the minutes that nothing held back: their 5th percentile
  latency_p25_ms double precision,  -- 25th percentile of these minutes
  latency_p50_ms double precision,  -- Median of these minutes
  latency_p75_ms double precision,  -- 75th percentile: in a quarter of them requests took at least so long
  primary key (hour, account, region, volume_id)
) partition by range (hour);

-- CloudWatch AWS/EBS, one row per volume and period. A metric that CloudWatch doesn't have is null, never 0.
create table metrics.volume_sample (
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  volume_id text not null,  -- EBS volume id
  at timestamptz not null,  -- Start of the period (UTC)
  period_seconds integer not null,  -- Length of the period
  read_ops double precision,  -- VolumeReadOps: operations in the period
  write_ops double precision,  -- VolumeWriteOps: operations in the period
  read_bytes double precision,  -- VolumeReadBytes: bytes in the period
  write_bytes double precision,  -- VolumeWriteBytes: bytes in the period
  read_seconds double precision,  -- VolumeTotalReadTime: seconds spent by all reads
  write_seconds double precision,  -- VolumeTotalWriteTime: seconds spent by all writes
  idle_seconds double precision,  -- VolumeIdleTime: seconds without any operation
  queue_length double precision,  -- VolumeQueueLength: operations waiting, average
  burst_balance_percent double precision,  -- BurstBalance, the period's lowest; null: no bucket, or not attached
  iops_exceeded double precision,  -- VolumeIOPSExceededCheck: 1 when the volume's IOPS were exceeded
  throughput_exceeded double precision,  -- VolumeThroughputExceededCheck: 1 when its throughput was exceeded
  stalled double precision,  -- VolumeStalledIOCheck: 1 when I/O stalled
  primary key (account, region, volume_id, at)
) partition by range (at);

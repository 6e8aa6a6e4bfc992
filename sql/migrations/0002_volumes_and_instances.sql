-- Metrics of EBS volumes, EC2 instances, and hosts.
create schema metrics;
comment on schema metrics is 'Measurements: samples, partitioned by day, and hourly facts.';

-- CloudWatch requests per hour, account, and region, which AWS bills.
create table metrics.cloudwatch_cost_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  app text not null,  -- Spark app that called it
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  calls integer not null,  -- GetMetricData requests, including retries
  metrics_requested integer not null,  -- Metrics requested, which AWS bills
  primary key (hour, app, account, region)
) partition by range (hour);

-- A host's file system in an hour, from its node exporter. metrics.node_hourly has only the fullest one.
create table metrics.file_system_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster that the host belongs to, or that its applications use
  endpoint text not null,  -- Address of the host's node exporter
  mountpoint text not null,  -- Mount point
  device text not null,  -- Device; one that is mounted at several places has a row for each
  fstype text not null,  -- ext4, xfs, …; file systems in memory and images (tmpfs, squashfs, …) are left out
  instance_id text,  -- EC2 instance id of the host
  size_bytes double precision not null,  -- Size, latest sample
  available_bytes double precision,  -- Bytes available to users other than root, latest sample
  available_min_bytes double precision,  -- The same, minimum of the samples
  read_only boolean,  -- Whether it is mounted read-only; null: not reported by the exporter
  primary key (hour, cluster, endpoint, mountpoint)
) partition by range (hour);

-- EC2 status checks of an instance, and the group of instances that it belongs to.
create table metrics.instance_health_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  instance_id text not null,  -- EC2 instance id
  instance_group text not null,  -- Auto Scaling group, otherwise tag application, otherwise instance id
  scaling_group text,  -- Auto Scaling group (tag aws:autoscaling:groupName)
  application text,  -- Tag application
  state text,  -- running, stopped, terminated, …
  is_spot boolean,  -- Whether AWS can reclaim it at any time (spot instance)
  launched_at timestamptz,  -- Launch time (UTC)
  observed_at timestamptz not null,  -- When it was queried (UTC)
  activities_known boolean not null,  -- Whether Auto Scaling reported the activities of this hour in its region
  minutes_checked integer,  -- Minutes with a status check; null: CloudWatch did not respond
  minutes_instance_failed integer,  -- Minutes in which the instance status check failed: its operating system does not respond
  minutes_system_failed integer,  -- Minutes in which the system status check failed: AWS hardware or network below the instance
  minutes_volumes_failed integer,  -- Minutes in which the attached EBS status check failed: its volumes are not reachable
  failing_since timestamptz,  -- When the current run of failed checks began (UTC); null: the latest check passed
  is_burstable boolean,  -- Whether its type earns CPU credits (T2, T3, T4g)
  cpu_credits double precision,  -- CPUCreditBalance, latest of the hour, in vCPU minutes; null: not reported
  cpu_credits_most double precision,  -- CPUCreditBalance, maximum of the hour
  cpu_credits_borrowed double precision,  -- CPUSurplusCreditBalance, latest of the hour: surplus credits spent that it may still earn back
  cpu_credits_charged double precision,  -- CPUSurplusCreditsCharged: surplus credits of the hour that AWS bills
  primary key (hour, account, region, instance_id)
) partition by range (hour);

-- An EC2 instance in an hour.
create table metrics.instance_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  instance_id text not null,  -- EC2 instance id
  minutes_expected integer not null,  -- Minutes of the hour that CloudWatch could have when it was queried
  minutes_present integer,  -- Minutes with a CPU value; null: CloudWatch did not respond
  cpu_mean_percent double precision,  -- CPU, mean
  cpu_max_percent double precision,  -- CPU, maximum of the minutes
  memory_used_mean_percent double precision,  -- System memory in use, mean
  memory_used_max_percent double precision,  -- System memory in use, maximum of the minutes
  disk_used_max_percent double precision,  -- Fullest file system
  ebs_io_balance_min_percent double precision,  -- Minimum EBSIOBalance%
  ebs_byte_balance_min_percent double precision,  -- Minimum EBSByteBalance%
  minutes_ebs_limited integer,  -- Minutes in which the instance's EBS limits throttled it
  primary key (hour, account, region, instance_id)
) partition by range (hour);

-- Network traffic of an EC2 instance in an hour, per direction, against the limits of its type.
create table metrics.instance_network_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  instance_id text not null,  -- EC2 instance id
  direction text not null,  -- in or out; each direction has its own limits
  instance_type text,  -- Type, e.g. m5.large
  baseline_bytes_per_second double precision,  -- Baseline bandwidth of the type; null: not reported by EC2
  peak_bytes_per_second double precision,  -- Maximum bandwidth of the type, reached in a burst
  minutes_expected integer not null,  -- Minutes of the hour that CloudWatch could have when it was queried
  minutes_present integer,  -- Minutes with a value; null: CloudWatch did not respond
  bytes_per_second_mean double precision,  -- Bytes per second, mean
  bytes_per_second_p99 double precision,  -- Bytes per second, 99th percentile of the periods
  bytes_per_second_max double precision,  -- Bytes per second, maximum of the periods
  bytes_per_second_now double precision,  -- Bytes per second, mean of the last 15 minutes
  minutes_above_baseline integer,  -- Minutes with more than 1.05 times the baseline
  minutes_at_peak integer,  -- Minutes with at least 0.95 times the maximum bandwidth
  minutes_above_lately integer,  -- Of the last 15 minutes, those above the baseline
  minutes_at_baseline_lately integer,  -- Of the last 15 minutes, those between 0.95 and 1.05 times the baseline
  minutes_allowance_exceeded integer,  -- Minutes in which AWS queued or dropped packets beyond the instance's allowances (bandwidth, packets, tracked connections); null: only MSK reports it
  primary key (hour, account, region, instance_id, direction)
) partition by range (hour);

-- CloudWatch NetworkIn and NetworkOut, one row per instance and period.
create table metrics.instance_network_sample (
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  instance_id text not null,  -- EC2 instance id
  at timestamptz not null,  -- Start of the period (UTC)
  period_seconds integer not null,  -- Length of the period, in seconds; 300 with basic monitoring
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
  period_seconds integer not null,  -- Length of the period, in seconds
  cpu_percent double precision,  -- CPUUtilization
  memory_used_percent double precision,  -- CWAgent mem_used_percent
  disk_used_percent double precision,  -- CWAgent disk_used_percent of the fullest file system
  ebs_io_balance_percent double precision,  -- EBSIOBalance%: I/O credits of the instance
  ebs_byte_balance_percent double precision,  -- EBSByteBalance%: throughput credits of the instance
  ebs_iops_exceeded double precision,  -- InstanceEBSIOPSExceededCheck: 1 when the instance's IOPS limit was exceeded
  ebs_throughput_exceeded double precision,  -- InstanceEBSThroughputExceededCheck: 1 when its throughput limit was exceeded
  primary key (account, region, instance_id, at)
) partition by range (at);

-- A host in an hour, from its node exporter.
create table metrics.node_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster that it belongs to, or that its applications use
  endpoint text not null,  -- Address of its node exporter
  instance_id text,  -- EC2 instance id
  booted_at timestamptz,  -- Boot time (UTC)
  samples integer,  -- Successful scrapes in this run; null: none
  covered_seconds double precision,  -- Time span of the counters behind the rates below, in seconds
  memory_bytes double precision,  -- Physical memory
  memory_used_mean_percent double precision,  -- Memory that is not available, mean of the samples; page cache counts as available
  memory_used_max_percent double precision,  -- The same, maximum of the samples
  page_cache_bytes double precision,  -- Page cache, minimum of the samples
  load_1m_max double precision,  -- Load average (1 minute), maximum of the samples
  cpu_ratio double precision,  -- CPU utilization over all cores, mean
  iowait_ratio double precision,  -- CPU time spent idle while waiting for I/O, as a share, mean
  disk_read_bytes_per_second double precision,  -- Bytes read from all disks per second
  disk_written_bytes_per_second double precision,  -- Bytes written to all disks per second
  disk_reads_per_second double precision,  -- Reads of all disks per second
  disk_writes_per_second double precision,  -- Writes of all disks per second
  busiest_disk text,  -- Disk with the highest utilization
  busiest_disk_ratio double precision,  -- Share of time in which that disk was busy
  fullest_file_system text,  -- Mount point of the fullest file system
  fullest_file_system_percent double precision,  -- Used space of that file system
  fullest_file_system_available_bytes double precision,  -- Available bytes on that file system
  steal_ratio double precision,  -- CPU steal, as a share, mean; cpu_ratio includes it
  primary key (hour, cluster, endpoint)
) partition by range (hour);

-- Readings of node exporters under Streamwarden's metric names (spark_apps/sources/jmx_metrics.py). Counters are stored as read.
create table metrics.node_sample (
  hour timestamptz not null,  -- Hour that it was read for (UTC)
  cluster text not null,  -- Kafka cluster that it belongs to, or that its applications use
  endpoint text not null,  -- Address of its node exporter, without credentials
  metric text not null,  -- Streamwarden's name of the metric, with its unit
  labels text not null,  -- Labels of the metric: JSON object with sorted keys, {} for the whole host
  at timestamptz not null,  -- When it was read (UTC)
  kind text not null,  -- counter or gauge
  value double precision,  -- Reading; null: the exporter returned NaN
  process_started_at timestamptz,  -- Boot time: counters began at 0 then (UTC)
  primary key (hour, cluster, endpoint, metric, labels, at)
) partition by range (hour);

-- Activities of Auto Scaling. No metric has which instance was taken out of service, or why.
create table metrics.scaling_activity_hourly (
  hour timestamptz not null,  -- Hour in which it began (UTC)
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  activity_id text not null,  -- Scaling activity
  scaling_group text not null,  -- Auto Scaling group
  instance_id text,  -- EC2 instance that it launches or terminates; null: the description has none
  is_termination boolean not null,  -- Whether it terminates the instance
  description text,  -- Description by AWS
  cause text,  -- Cause by AWS
  status text,  -- InProgress, Successful, Failed, Cancelled, …
  started_at timestamptz not null,  -- When it began (UTC)
  ended_at timestamptz,  -- When it ended (UTC); null: it was in progress when it was queried
  primary key (hour, account, region, activity_id)
) partition by range (hour);

-- A volume in an hour: its load, limits, and burst bucket. Computed from volume_sample and the inventory.
create table metrics.volume_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  volume_id text not null,  -- EBS volume id
  known_until timestamptz not null,  -- Time until which CloudWatch data was complete when it was queried (UTC)
  minutes_expected integer not null,  -- Minutes of the hour that CloudWatch could have when it was queried
  minutes_present integer,  -- Minutes with operations; null: CloudWatch did not respond
  minutes_balance integer,  -- Minutes with BurstBalance; null: CloudWatch did not respond
  iops_mean double precision,  -- Operations per second, mean
  iops_p95 double precision,  -- 95th percentile of the minutes
  iops_p99 double precision,  -- 99th percentile of the minutes
  iops_max double precision,  -- Maximum of the minutes
  iops_now double precision,  -- Mean of the last 15 known minutes
  busy_iops_p95 double precision,  -- 95th percentile of operations / (period - idle time): the rate that micro-bursts demand
  bytes_per_second_mean double precision,  -- Bytes per second, mean
  bytes_per_second_p95 double precision,  -- 95th percentile of the minutes
  bytes_per_second_p99 double precision,  -- 99th percentile of the minutes
  bytes_per_second_max double precision,  -- Maximum of the minutes
  bytes_per_second_now double precision,  -- Mean of the last 15 known minutes
  read_bytes double precision,  -- Bytes read in the hour
  write_bytes double precision,  -- Bytes written in the hour
  queue_length_mean double precision,  -- Queue length, mean
  queue_length_max double precision,  -- Queue length, maximum of the minutes
  read_latency_ms double precision,  -- Read latency, mean
  write_latency_ms double precision,  -- Write latency, mean
  baseline_iops double precision,  -- Baseline IOPS, sustained without credits
  burst_iops double precision,  -- IOPS reached with burst credits (the maximum, if there is no burst bucket)
  baseline_bytes_per_second double precision,  -- Baseline throughput in bytes per second, sustained without credits
  burst_bytes_per_second double precision,  -- Throughput in bytes per second, reached with burst credits
  bucket_credits double precision,  -- Capacity of the burst bucket: I/O operations for gp2, bytes for st1 and sc1; null: no bucket
  burst_balance_min_percent double precision,  -- Minimum BurstBalance of the hour
  burst_balance_last_percent double precision,  -- Latest BurstBalance of the hour
  modelled_balance_last_percent double precision,  -- The same, from Streamwarden's model of the bucket, computed from operations alone
  credits_per_hour double precision,  -- Credits gained per hour at the load of the last 15 minutes, or of whole cycles (cycle_minutes); negative: the bucket is draining
  hours_to_exhaustion double precision,  -- Hours until the bucket is empty at that load, 0 when it is empty; null: not draining
  hours_to_exhaustion_low double precision,  -- The same at the 90th percentile of the hour's minutes, or in the heaviest cycle
  hours_to_exhaustion_high double precision,  -- The same at the 10th percentile of the hour's minutes, where the bucket drains at that load too; or in the lightest cycle
  minutes_empty integer,  -- Minutes with BurstBalance of at most 1 %
  minutes_at_iops_limit integer,  -- Minutes in which the volume's IOPS limit was exceeded
  minutes_at_throughput_limit integer,  -- Minutes in which the volume's throughput limit was exceeded
  minutes_at_instance_limit integer,  -- Minutes in which the instance's EBS limits were exceeded
  minutes_stalled integer,  -- Minutes with stalled I/O
  minutes_throttled integer,  -- Minutes in which any of these limits was exceeded
  throttled_since timestamptz,  -- When throttling began, without a pause of 10 minutes since (UTC); null: not throttled
  demand_iops_p95 double precision,  -- Demand in IOPS, 95th percentile; includes the last day if the volume was throttled
  demand_iops_p99 double precision,  -- 99th percentile of the same
  demand_bytes_per_second_p95 double precision,  -- Demand in bytes per second, 95th percentile, likewise
  demand_bytes_per_second_p99 double precision,  -- 99th percentile of the same
  demand_hours double precision,  -- Hours of data behind these four percentiles
  read_baseline_bytes_per_second double precision,  -- Baseline of the read rate at this hour of the week (median); only volumes of brokers
  read_baseline_mad_bytes_per_second double precision,  -- Median absolute deviation of that baseline
  read_baseline_hours integer,  -- Hours of history behind the baseline
  read_baseline_kind text,  -- hour_of_week, or all_hours while there is too little history
  minutes_draining integer,  -- Of the last 15 minutes, those that used more than the bucket earns; null: no bucket
  latency_p05_ms double precision,  -- Latency of a request in minutes without throttling, 5th percentile of the minutes
  latency_p25_ms double precision,  -- 25th percentile of these minutes
  latency_p50_ms double precision,  -- Median of these minutes
  latency_p75_ms double precision,  -- 75th percentile of these minutes
  cycle_minutes double precision,  -- Mean time from one pause of the load to the next; null: the load does not go on and off
  primary key (hour, account, region, volume_id)
) partition by range (hour);

-- CloudWatch AWS/EBS, one row per volume and period. A metric that CloudWatch does not have is null, never 0.
create table metrics.volume_sample (
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  volume_id text not null,  -- EBS volume id
  at timestamptz not null,  -- Start of the period (UTC)
  period_seconds integer not null,  -- Length of the period, in seconds
  read_ops double precision,  -- VolumeReadOps: operations in the period
  write_ops double precision,  -- VolumeWriteOps: operations in the period
  read_bytes double precision,  -- VolumeReadBytes: bytes in the period
  write_bytes double precision,  -- VolumeWriteBytes: bytes in the period
  read_seconds double precision,  -- VolumeTotalReadTime: seconds spent by all reads
  write_seconds double precision,  -- VolumeTotalWriteTime: seconds spent by all writes
  idle_seconds double precision,  -- VolumeIdleTime: seconds without any operation
  queue_length double precision,  -- VolumeQueueLength: operations waiting, mean
  burst_balance_percent double precision,  -- BurstBalance, minimum of the period; null: no bucket, or not attached
  iops_exceeded double precision,  -- VolumeIOPSExceededCheck: 1 when the volume's IOPS limit was exceeded
  throughput_exceeded double precision,  -- VolumeThroughputExceededCheck: 1 when its throughput limit was exceeded
  stalled double precision,  -- VolumeStalledIOCheck: 1 when I/O stalled
  primary key (account, region, volume_id, at)
) partition by range (at);

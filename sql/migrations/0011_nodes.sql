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
  primary key (hour, cluster, endpoint)
);

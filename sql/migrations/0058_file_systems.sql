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
comment on table metrics.file_system_hourly is
'An hour of a file system of a machine by its node exporter: how large it is and what is left.';

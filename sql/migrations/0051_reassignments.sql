-- Partitions that are being moved between brokers, and the throttles that slow their replication.
create table inventory.reassignment_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster, as named in the config
  topic text not null,  -- Topic
  partition integer not null,  -- Partition that is being moved
  replicas jsonb not null,  -- Brokers that have replicas of it while it is moved, as a list of ids
  adding jsonb not null,  -- Brokers among them that get one
  removing jsonb not null,  -- Brokers among them that lose theirs
  partition_bytes bigint,  -- Size of its largest replica that was there before; null: its brokers didn't tell
  copied_bytes bigint,  -- Size of its replicas on the brokers that get one, together
  left_bytes bigint,  -- What these lack yet: the partition's size for each, less what it has
  observed_at timestamptz,  -- When it was listed
  primary key (hour, cluster, topic, partition)
) partition by range (hour);
comment on table inventory.reassignment_hourly is
'Partitions that were being reassigned when the hour was gathered; whether that was told says broker_hourly.adding_replicas.';

alter table inventory.broker_hourly
  add column adding_replicas integer,  -- Replicas that reassignments are adding to it; null: the cluster didn't tell
  add column throttles jsonb;  -- Throttles of replication that are set on it, by setting: value, and whether it is its own or all brokers'; null: not told

alter table inventory.topic_hourly
  add column leader_throttled_replicas text,  -- Replicas that are throttled while others copy from them, as partition:broker, or *; null: none, or its settings weren't told
  add column follower_throttled_replicas text;  -- Replicas that are throttled while they copy

-- Hardly any topic has them, and they are looked for over weeks.
create index on inventory.topic_hourly (hour)
where leader_throttled_replicas is not null or follower_throttled_replicas is not null;

alter table metrics.broker_hourly
  add column reassigning_partitions double precision,  -- Partitions that it leads and that are being reassigned, maximum of the samples
  add column reassignment_bytes_in_per_second double precision,  -- Bytes that it copies for reassignments
  add column reassignment_bytes_out_per_second double precision;  -- Bytes that others copy from it for reassignments

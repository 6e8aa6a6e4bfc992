-- What there is: one row per thing and hour, as it was seen. History is the hours themselves; the views show it as
-- valid_from / valid_to. A row seen after its hour (a backfill) tells by observed_at.
create schema inventory;
comment on schema inventory is 'What there is: volumes, instances, topics; one row per thing and hour.';

-- EC2 instances.
create table inventory.instance_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  instance_id text not null,  -- EC2 instance id
  instance_type text not null,  -- Type, e.g. m5.large
  state text not null,  -- running, stopped, …
  name text,  -- Tag Name
  application text,  -- Tag application
  owner text,  -- Tag owner: who gets the ticket
  private_ip text,  -- Private address
  private_dns text,  -- Private host name
  launched_at timestamptz,  -- Launch time
  vcpus integer,  -- Virtual CPUs of the type
  memory_bytes bigint,  -- Memory of the type
  nitro boolean,  -- Whether the type runs on Nitro (per-minute EBS checks exist there only)
  ebs_baseline_iops double precision,  -- EBS operations per second the type sustains
  ebs_maximum_iops double precision,  -- EBS operations per second it reaches in a burst
  ebs_baseline_bytes_per_second double precision,  -- EBS bytes per second the type sustains
  ebs_maximum_bytes_per_second double precision,  -- EBS bytes per second it reaches in a burst
  tags jsonb not null,  -- All tags
  observed_at timestamptz not null,  -- When it was asked
  primary key (hour, account, region, instance_id)
);

-- EBS volumes and what they are attached to.
create table inventory.volume_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  volume_id text not null,  -- EBS volume id
  volume_type text not null,  -- gp2, gp3, io1, io2, st1, sc1, standard
  size_gib integer not null,  -- Size in GiB
  provisioned_iops integer,  -- IOPS as provisioned or as AWS states them for the size
  provisioned_throughput_mib_s integer,  -- Throughput as provisioned (gp3)
  state text not null,  -- in-use, available, …
  multi_attach boolean,  -- Whether several instances may attach it
  instance_id text,  -- Instance it is attached to; null when detached
  device text,  -- Device name there
  attached_at timestamptz,  -- Since when
  created_at timestamptz,  -- Creation time
  name text,  -- Tag Name
  application text,  -- Tag application
  owner text,  -- Tag owner: who gets the ticket
  tags jsonb not null,  -- All tags
  observed_at timestamptz not null,  -- When it was asked
  primary key (hour, account, region, volume_id)
);

-- Kafka topics with their configuration.
create table inventory.topic_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  topic text not null,  -- Topic
  partitions integer not null,  -- Number of partitions
  replication_factor integer,  -- Replicas of its partitions (the least)
  kind text not null,  -- plain, changelog, repartition or internal (__…)
  application_id text,  -- Streams application id, for changelog and repartition topics
  cleanup_policy text,  -- cleanup.policy
  retention_ms bigint,  -- retention.ms
  segment_bytes bigint,  -- segment.bytes
  configs jsonb,  -- Every config: {name: {value, source}}; null where the ACL is missing
  observed_at timestamptz not null,  -- When it was asked
  primary key (hour, cluster, topic)
);

-- Consumer groups.
create table inventory.consumer_group_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  group_id text not null,  -- Group
  protocol text,  -- classic or consumer (KIP-848)
  state text,  -- STABLE, EMPTY, DEAD, …
  assignor text,  -- Partition assignor
  members integer,  -- Members
  observed_at timestamptz not null,  -- When it was asked
  primary key (hour, cluster, group_id)
);

-- Members of consumer groups: who reads, from where.
create table inventory.consumer_member_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  group_id text not null,  -- Group
  member_id text not null,  -- Member id
  client_id text,  -- client.id
  host text,  -- Address it connects from
  assignment jsonb not null,  -- {topic: [partition, …]}
  primary key (hour, cluster, group_id, member_id)
);

-- What exists, hour by hour: volumes, instances, brokers, topics, groups, schemas; and prices of volumes.
create schema inventory;
comment on schema inventory is 'What there is: volumes, instances, topics; one row per thing and hour.';
create schema staging;
comment on schema staging is 'Where Spark tasks put rows before the hour is replaced in one transaction. Empty between runs.';

-- Brokers as their cluster lists them: that one is missing is told by the cluster, not by our own way to it.
create table inventory.broker_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  broker_id integer not null,  -- Broker's id
  host text,  -- Host by which clients reach it; null: it isn't listed
  is_listed boolean not null,  -- Whether the cluster listed it at one of two looks
  replicas integer not null,  -- Replicas that it has, in sync or not
  observed_at timestamptz not null,  -- When it was first asked
  adding_replicas integer,  -- Replicas that reassignments are adding to it; null: the cluster didn't tell
  throttles jsonb,  -- Throttles of replication that are set on it, by setting: value, and whether it is its own or all brokers'; null: not told
  rack text,  -- Its broker.rack; null: it has none, or isn't listed, or the cluster didn't tell
  primary key (hour, cluster, broker_id)
) partition by range (hour);

-- Consumer groups.
create table inventory.consumer_group_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  group_id text not null,  -- Group
  protocol text,  -- classic, consumer (KIP-848) or streams (KIP-1071: its members aren't told); samza: a job, by its checkpoints
  state text,  -- STABLE, EMPTY, DEAD, …; null: it couldn't be asked, or no coordinator lists the group
  assignor text,  -- Partition assignor
  members integer,  -- Members
  observed_at timestamptz not null,  -- When it was asked; where no coordinator lists the group, when it last was there
  primary key (hour, cluster, group_id)
) partition by range (hour);

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
) partition by range (hour);

-- List prices of EBS volumes by region, USD a month; read from the table of prices (config `ebs_prices`) by `migrate`.
create table inventory.ebs_price (
  region text primary key,  -- AWS region
  as_of date not null,  -- Day for which the prices are known
  source text not null,  -- Where they come from
  gp2_gib double precision,  -- gp2, per GiB; null: not known, as below
  gp3_gib double precision,  -- gp3, per GiB
  gp3_iops double precision,  -- gp3, per IOPS over 3,000
  gp3_mib_s double precision,  -- gp3, per MiB/s over 125
  io1_gib double precision,  -- io1, per GiB
  io1_iops double precision,  -- io1, per IOPS
  io2_gib double precision,  -- io2, per GiB
  io2_iops double precision,  -- io2, per IOPS up to 32,000
  io2_iops_above_32000 double precision,  -- io2, per IOPS from there to 64,000
  io2_iops_above_64000 double precision,  -- io2, per IOPS beyond
  st1_gib double precision,  -- st1, per GiB
  sc1_gib double precision  -- sc1, per GiB
);

-- EC2 instances.
create table inventory.instance_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  instance_id text not null,  -- EC2 instance id
  instance_type text,  -- Type, e.g. m5.large
  state text,  -- running, stopped, …
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
) partition by range (hour);

-- Brokers of Amazon MSK by its API. The ids of instance and volume are ours: MSK's are in no account of the customer.
create table inventory.msk_broker_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  broker_id integer not null,  -- Broker id
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  host text not null,  -- Host name of the broker
  private_ip text,  -- Address in the VPC of the clients
  subnet text,  -- Subnet of the clients
  availability_zone text,  -- Availability zone of that subnet; null: not allowed to read
  instance_id text not null,  -- Id of its instance in inventory.instance_hourly
  volume_id text,  -- Id of its storage in inventory.volume_hourly; null: Express brokers have none of their own
  observed_at timestamptz not null,  -- When it was asked
  primary key (hour, cluster, broker_id)
) partition by range (hour);

-- Clusters of Amazon MSK by its API.
create table inventory.msk_cluster_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  msk_name text not null,  -- Name in MSK, the CloudWatch dimension Cluster Name
  cluster_arn text not null,  -- ARN
  kind text not null,  -- standard, express, or serverless
  state text not null,  -- ACTIVE, CREATING, UPDATING, …
  kafka_version text,  -- Apache Kafka version
  current_version text,  -- Version of the cluster's settings, which each change has to name
  instance_type text,  -- Broker size, e.g. kafka.m5.large
  broker_count integer,  -- Brokers
  volume_gib integer,  -- Storage of each broker, GiB
  provisioned_mib_s integer,  -- Provisioned storage throughput, MiB/s; null: not enabled
  storage_mode text,  -- LOCAL or TIERED
  monitoring_level text,  -- Enhanced monitoring: DEFAULT, PER_BROKER, PER_TOPIC_PER_BROKER, or PER_TOPIC_PER_PARTITION
  has_jmx_exporter boolean,  -- Open monitoring: JMX exporter at port 11001
  has_node_exporter boolean,  -- Open monitoring: node exporter at port 11002
  is_read_by_jmx boolean not null,  -- Whether the brokers' JVMs are read at that port
  is_connected boolean not null,  -- Whether topics, groups, and offsets are read over Kafka's protocol
  authentications text,  -- Ways to log in that are enabled: iam, scram, mtls, none
  bootstrap_servers text,  -- Bootstrap addresses; null: not read
  tags jsonb,  -- All tags
  observed_at timestamptz not null,  -- When it was asked
  primary key (hour, cluster)
) partition by range (hour);

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

-- Texts of registered schemas by their id, once each: they never change.
create table inventory.registered_schema (
  cluster text not null,  -- Kafka cluster
  schema_id integer not null,  -- Id that frames values: magic byte 0, then this
  schema_type text not null,  -- AVRO, JSON or PROTOBUF
  definition text not null,  -- The schema
  schema_references jsonb,  -- Schemas that it builds on: [{name, subject, version}, …]; null: none
  primary key (cluster, schema_id)
);

-- Subjects of Schema Registries: which versions there are and how each may change.
create table inventory.schema_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  subject text not null,  -- Subject, by default <topic>-key or <topic>-value
  version integer not null,  -- Version of the subject
  schema_id integer,  -- Id that frames values: joins inventory.registered_schema
  compatibility text,  -- BACKWARD, FORWARD, FULL, … _TRANSITIVE or NONE; null: it couldn't be asked
  compatibility_source text,  -- subject: set for it; global: the registry's
  observed_at timestamptz not null,  -- When it was asked
  primary key (hour, cluster, subject, version)
) partition by range (hour);

-- Kafka topics with their configuration.
create table inventory.topic_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  topic text not null,  -- Topic
  partitions integer not null,  -- Number of partitions
  replication_factor integer,  -- Replicas of its partitions (the least)
  kind text not null,  -- plain, changelog, repartition, coordinator or checkpoint (of a Samza job), or internal (of Kafka itself: __…)
  application_id text,  -- Streams application id or Samza job that the topic belongs to; null of plain and internal topics
  cleanup_policy text,  -- cleanup.policy
  retention_ms bigint,  -- retention.ms
  segment_bytes bigint,  -- segment.bytes
  configs jsonb,  -- Every config: {name: {value, source}}; null where the ACL is missing
  observed_at timestamptz not null,  -- When it was asked
  leader_throttled_replicas text,  -- Replicas that are throttled while others copy from them, as partition:broker, or *; null: none, or its settings weren't told
  follower_throttled_replicas text,  -- Replicas that are throttled while they copy
  one_rack_partitions integer,  -- Partitions whose replicas, of which there are several, all lie in one rack; null: of no partition that is known, and of some the racks aren't
  primary key (hour, cluster, topic)
) partition by range (hour);
create index topic_hourly_throttled on inventory.topic_hourly (hour)
where leader_throttled_replicas is not null or follower_throttled_replicas is not null;

-- EBS volumes and what they are attached to.
create table inventory.volume_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  volume_id text not null,  -- EBS volume id
  volume_type text,  -- gp2, gp3, io1, io2, st1, sc1, standard
  size_gib integer,  -- Size in GiB
  provisioned_iops integer,  -- IOPS as provisioned or as AWS states them for the size
  provisioned_throughput_mib_s integer,  -- Throughput as provisioned (gp3)
  state text,  -- in-use, available, …
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
) partition by range (hour);

-- Stretches of time in which a volume was the same. Kept up to date by triggers of volume_hourly, and for good.
create table inventory.volume_stretch (
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  volume_id text not null,  -- EBS volume id
  valid_from timestamptz not null,  -- First hour it was seen so (UTC)
  last_hour timestamptz not null,  -- Last hour it was seen so (UTC)
  hours_seen bigint not null,  -- Hours it was seen so; an hour that is loaded long after isn't counted
  volume_type text,  -- gp2, gp3, io1, io2, st1, sc1, standard
  size_gib integer,  -- Size in GiB
  provisioned_iops integer,  -- IOPS as provisioned
  provisioned_throughput_mib_s integer,  -- Throughput as provisioned, MiB/s
  instance_id text,  -- Instance it is attached to; null when detached
  primary key (account, region, volume_id, valid_from)
) with (fillfactor=70);

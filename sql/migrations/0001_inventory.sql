-- What exists in each hour: volumes, instances, brokers, topics, groups, and schemas; and the prices of volumes.
create schema inventory;
comment on schema inventory is 'What exists: volumes, instances, brokers, topics, groups; one row per resource and hour.';
create schema staging;
comment on schema staging is 'Where Spark tasks write rows before the hour is replaced in one transaction. Empty between runs.';

-- Brokers as their cluster lists them. A broker is missing when the cluster does not list it, not when our connection to it fails.
create table inventory.broker_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  broker_id integer not null,  -- Broker id
  host text,  -- Host under which clients reach it; null: not listed
  is_listed boolean not null,  -- Whether the cluster listed it in at least one of two metadata requests
  replicas integer not null,  -- Replicas assigned to it, in sync or not
  observed_at timestamptz not null,  -- When it was first queried (UTC)
  adding_replicas integer,  -- Replicas that reassignments are adding to it; null: not reported
  throttles jsonb,  -- Replication throttles in force on it, by setting: value, and whether it is set on the broker or as the default of all brokers; null: not reported
  rack text,  -- Its broker.rack; null: it has none, is not listed, or the cluster did not report racks
  primary key (hour, cluster, broker_id)
) partition by range (hour);

-- Consumer groups.
create table inventory.consumer_group_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  group_id text not null,  -- Group
  protocol text,  -- classic, consumer (KIP-848), streams (KIP-1071) or share (KIP-932; members of both are not reported), or samza (a job, known from its checkpoints)
  state text,  -- STABLE, EMPTY, DEAD, …; null: it could not be described, or no coordinator lists the group
  assignor text,  -- Partition assignor
  members integer,  -- Members
  observed_at timestamptz not null,  -- When it was queried (UTC); when it last existed, if no coordinator lists the group
  primary key (hour, cluster, group_id)
) partition by range (hour);

-- Members of consumer groups: which client reads which partitions, and from which host.
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

-- List prices of EBS volumes by region, in USD per month. `migrate` reads them from the price table (config `ebs_prices`).
create table inventory.ebs_price (
  region text primary key,  -- AWS region
  as_of date not null,  -- Day for which the prices are valid
  source text not null,  -- Where the prices come from
  gp2_gib double precision,  -- gp2, per GiB; null here and below: not known
  gp3_gib double precision,  -- gp3, per GiB
  gp3_iops double precision,  -- gp3, per IOPS above 3,000
  gp3_mib_s double precision,  -- gp3, per MiB/s above 125
  io1_gib double precision,  -- io1, per GiB
  io1_iops double precision,  -- io1, per IOPS
  io2_gib double precision,  -- io2, per GiB
  io2_iops double precision,  -- io2, per IOPS up to 32,000
  io2_iops_above_32000 double precision,  -- io2, per IOPS between 32,000 and 64,000
  io2_iops_above_64000 double precision,  -- io2, per IOPS above 64,000
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
  owner text,  -- Tag owner: the assignee of tickets
  private_ip text,  -- Private IP address
  private_dns text,  -- Private host name
  launched_at timestamptz,  -- Launch time
  vcpus integer,  -- vCPUs of the instance type
  memory_bytes bigint,  -- Memory of the instance type
  nitro boolean,  -- Whether the type runs on Nitro; only Nitro instances have per-minute EBS limit checks
  ebs_baseline_iops double precision,  -- EBS baseline IOPS of the type
  ebs_maximum_iops double precision,  -- EBS maximum IOPS of the type, reached in a burst
  ebs_baseline_bytes_per_second double precision,  -- EBS baseline throughput of the type, in bytes per second
  ebs_maximum_bytes_per_second double precision,  -- EBS maximum throughput of the type, in bytes per second, reached in a burst
  tags jsonb not null,  -- All tags
  observed_at timestamptz not null,  -- When it was queried (UTC)
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
  observed_at timestamptz not null,  -- When it was queried (UTC)
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
  observed_at timestamptz not null,  -- When it was queried (UTC)
  primary key (hour, cluster)
) partition by range (hour);

-- Connectors of Kafka Connect, as its REST API reports them.
create table inventory.connector_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster that the Connect cluster works on
  connect_cluster text not null,  -- Connect cluster, as named in the config
  connector text not null,  -- Connector
  url text not null,  -- Address of the connector in the REST API, without credentials
  connector_type text,  -- source or sink
  connector_class text,  -- Class of the connector, e.g. io.debezium.connector.postgresql.PostgresConnector
  group_id text,  -- Consumer group of a sink: connect-<connector>, or consumer.override.group.id
  state text not null,  -- RUNNING, PAUSED, STOPPED, RESTARTING, UNASSIGNED, or FAILED
  worker text,  -- Worker that runs it, host:port
  trace text,  -- Beginning of the stack trace if it failed
  tasks integer not null,  -- Number of its tasks
  observed_at timestamptz not null,  -- When it was queried (UTC)
  primary key (hour, cluster, connect_cluster, connector)
) partition by range (hour);

-- Tasks of connectors, as the REST API of Kafka Connect reports them.
create table inventory.connector_task_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster that the Connect cluster works on
  connect_cluster text not null,  -- Connect cluster, as named in the config
  connector text not null,  -- Connector
  task_id integer not null,  -- Task of the connector, from 0
  state text not null,  -- RUNNING, PAUSED, RESTARTING, UNASSIGNED, or FAILED
  worker text,  -- Worker that runs it, host:port
  trace text,  -- Beginning of the stack trace if it failed
  observed_at timestamptz not null,  -- When it was queried (UTC)
  primary key (hour, cluster, connect_cluster, connector, task_id)
) partition by range (hour);

-- PersistentVolumeClaims of the pods that are read, with the EBS volumes behind them.
create table inventory.pod_claim_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  kubernetes text not null,  -- Kubernetes cluster
  namespace text not null,  -- Namespace
  pod text not null,  -- Pod that uses the claim
  claim text not null,  -- PersistentVolumeClaim
  storage_class text,  -- StorageClass; null: not readable
  size_bytes bigint,  -- Size of the volume; null: not readable
  volume text,  -- PersistentVolume; null: not bound, or not readable
  volume_id text,  -- EBS volume id; null: not bound, not on EBS, or not readable
  observed_at timestamptz not null,  -- When it was queried (UTC)
  primary key (hour, kubernetes, namespace, pod, claim)
) partition by range (hour);

-- Pods of brokers, applications, and node exporters, with the container of their JVM.
create table inventory.pod_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  kubernetes text not null,  -- Kubernetes cluster
  namespace text not null,  -- Namespace
  pod text not null,  -- Pod
  uid text not null,  -- Its uid: a new one for each pod, even of the same name
  role text not null,  -- broker, app, or node
  cluster text,  -- Kafka cluster; null: unknown
  app text,  -- Application, by the pod's labels or its workload
  endpoint text,  -- Address of its metrics; null: it exposes none, or does not run
  broker_id integer,  -- Broker id, of Strimzi's pods
  container text,  -- Container of the JVM; the columns on limits and restarts are about this one
  node text,  -- Node; null: not scheduled
  instance_id text,  -- EC2 instance of the node; null: not on EC2, or not readable
  workload_kind text,  -- Deployment, StatefulSet, StrimziPodSet, …; null: none
  workload text,  -- Name of the workload
  node_pool text,  -- KafkaNodePool of Strimzi
  owner text,  -- Owner by the pod's labels: the assignee of tickets
  phase text,  -- Pending, Running, Succeeded, or Failed
  memory_limit_bytes bigint,  -- Memory limit; null: none
  memory_request_bytes bigint,  -- Memory request; null: none
  cpu_limit_cores double precision,  -- CPU limit; null: none
  restarts integer,  -- Restarts since the pod exists; null: not reported
  state text,  -- running, waiting, or terminated; null: not reported
  state_reason text,  -- Why it waits or has ended, e.g. CrashLoopBackOff
  started_at timestamptz,  -- When its current run started (UTC)
  last_reason text,  -- Why its previous run ended: OOMKilled, Error, Completed, …; null: it had none
  last_exit_code integer,  -- Exit code of the previous run
  last_started_at timestamptz,  -- When the previous run started (UTC)
  last_finished_at timestamptz,  -- When the previous run ended (UTC)
  created_at timestamptz,  -- When the pod was created (UTC)
  observed_at timestamptz not null,  -- When it was queried (UTC)
  primary key (hour, kubernetes, namespace, pod)
) partition by range (hour);

-- Partitions that are being reassigned to other brokers.
create table inventory.reassignment_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster, as named in the config
  topic text not null,  -- Topic
  partition integer not null,  -- Partition that is being reassigned
  replicas jsonb not null,  -- Ids of the brokers that hold or get a replica during the reassignment, a JSON list
  adding jsonb not null,  -- Ids of the brokers that get a replica
  removing jsonb not null,  -- Ids of the brokers that lose their replica
  partition_bytes bigint,  -- Size of its largest existing replica; null: not reported by its brokers
  copied_bytes bigint,  -- Bytes that the new replicas have copied so far, in total
  left_bytes bigint,  -- Bytes that the new replicas still have to copy, in total
  observed_at timestamptz,  -- When it was listed (UTC)
  primary key (hour, cluster, topic, partition)
) partition by range (hour);

-- Definitions of registered schemas by id, stored once each: a registered schema never changes.
create table inventory.registered_schema (
  cluster text not null,  -- Kafka cluster
  schema_id integer not null,  -- Schema id in the value's header: magic byte 0, then this id
  schema_type text not null,  -- AVRO, JSON or PROTOBUF
  definition text not null,  -- Definition of the schema
  schema_references jsonb,  -- Schemas that it references: [{name, subject, version}, …]; null: none
  primary key (cluster, schema_id)
);

-- Subjects of Schema Registries: their versions, and the compatibility mode.
create table inventory.schema_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  subject text not null,  -- Subject, by default <topic>-key or <topic>-value
  version integer not null,  -- Version of the subject
  schema_id integer,  -- Id in the header of values; joins inventory.registered_schema
  compatibility text,  -- BACKWARD, FORWARD, FULL, … _TRANSITIVE or NONE; null: not reported
  compatibility_source text,  -- subject: set on the subject; global: default of the registry
  observed_at timestamptz not null,  -- When it was queried (UTC)
  primary key (hour, cluster, subject, version)
) partition by range (hour);

-- Custom resources of Strimzi: Kafka, KafkaNodePool, KafkaUser, and KafkaTopic.
create table inventory.strimzi_resource_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  kubernetes text not null,  -- Kubernetes cluster
  namespace text not null,  -- Namespace
  kind text not null,  -- Kafka, KafkaNodePool, KafkaUser, or KafkaTopic
  name text not null,  -- Name of the resource
  cluster text,  -- Kafka cluster; null: unknown
  kafka_name text,  -- Name of the topic or user in Kafka
  owner text,  -- Owner by its labels: the assignee of tickets
  is_ready boolean,  -- Whether the operator reports it ready; null: not reported
  message text,  -- Why it is not ready
  roles text,  -- Roles of a node pool's nodes: broker, controller
  replicas integer,  -- Nodes of a pool or cluster
  storage_class text,  -- StorageClass of the nodes' volumes
  storage_bytes bigint,  -- Storage of each node; null: ephemeral, or not stated
  kafka_version text,  -- Kafka version that runs
  bootstrap_servers text,  -- Address of the listener that clients use; null: none
  read_groups text,  -- Consumer groups that a user may read, JSON: [[name, whether it is a prefix], …]
  observed_at timestamptz not null,  -- When it was queried (UTC)
  primary key (hour, kubernetes, namespace, kind, name)
) partition by range (hour);

-- Kafka topics with their configuration.
create table inventory.topic_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  topic text not null,  -- Topic
  partitions integer not null,  -- Number of partitions
  replication_factor integer,  -- Smallest replication factor of its partitions
  kind text not null,  -- plain, changelog, repartition, coordinator or checkpoint (of a Samza job), or internal (Kafka's own: __…)
  application_id text,  -- Kafka Streams application id or Samza job that the topic belongs to; null for plain and internal topics
  cleanup_policy text,  -- cleanup.policy
  retention_ms bigint,  -- retention.ms
  segment_bytes bigint,  -- segment.bytes
  configs jsonb,  -- All configs: {name: {value, source}}; null: the DescribeConfigs ACL is missing
  observed_at timestamptz not null,  -- When it was queried (UTC)
  leader_throttled_replicas text,  -- Replicas whose leader side is throttled (leader.replication.throttled.replicas), as partition:broker or *; null: none, or the configs are not reported
  follower_throttled_replicas text,  -- Replicas whose follower side is throttled (follower.replication.throttled.replicas), likewise
  one_rack_partitions integer,  -- Partitions with several replicas that are all in one rack; null: no partition is known, or racks of some brokers are not known
  primary key (hour, cluster, topic)
) partition by range (hour);
create index topic_hourly_throttled on inventory.topic_hourly (hour)
where leader_throttled_replicas is not null or follower_throttled_replicas is not null;

-- EBS volumes and their attachments.
create table inventory.volume_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  volume_id text not null,  -- EBS volume id
  volume_type text,  -- gp2, gp3, io1, io2, st1, sc1, standard
  size_gib integer,  -- Size in GiB
  provisioned_iops integer,  -- Provisioned IOPS, or the IOPS that AWS reports for the size
  provisioned_throughput_mib_s integer,  -- Provisioned throughput (gp3), in MiB/s
  state text,  -- in-use, available, …
  multi_attach boolean,  -- Whether Multi-Attach is enabled
  instance_id text,  -- Instance that it is attached to; null: detached
  device text,  -- Device name on the instance
  attached_at timestamptz,  -- When it was attached (UTC)
  created_at timestamptz,  -- When it was created (UTC)
  name text,  -- Tag Name
  application text,  -- Tag application
  owner text,  -- Tag owner: the assignee of tickets
  tags jsonb not null,  -- All tags
  observed_at timestamptz not null,  -- When it was queried (UTC)
  primary key (hour, account, region, volume_id)
) partition by range (hour);

-- Periods in which the configuration of a volume did not change. Triggers of volume_hourly maintain them; they are never deleted.
create table inventory.volume_configuration (
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  volume_id text not null,  -- EBS volume id
  valid_from timestamptz not null,  -- First hour with this configuration (UTC)
  last_hour timestamptz not null,  -- Last hour with this configuration (UTC)
  hours_seen bigint not null,  -- Hours with this configuration that were observed; hours that a late backfill adds are not counted
  volume_type text,  -- gp2, gp3, io1, io2, st1, sc1, standard
  size_gib integer,  -- Size in GiB
  provisioned_iops integer,  -- Provisioned IOPS
  provisioned_throughput_mib_s integer,  -- Provisioned throughput, in MiB/s
  instance_id text,  -- Instance that it is attached to; null: detached
  primary key (account, region, volume_id, valid_from)
) with (fillfactor = 70);

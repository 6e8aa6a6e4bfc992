-- How long records take to the ends of a Kafka Streams application, and what each application is meant to need.
create table metrics.stream_node_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster it works on
  app text not null,  -- Application
  endpoint text not null,  -- Address of the process' JMX agent
  subtopology text not null,  -- Sub-topology of the node: its tasks' ids begin so
  node text not null,  -- Node of the topology that takes records in, or at which they end
  topics jsonb,  -- Topics that it reads; null: records end there, or the client (before Kafka 3.3) doesn't tell
  holds_back boolean not null,  -- Whether its sub-topology aggregates windows or suppresses updates: what it emits may wait until a window ends
  readings integer not null,  -- Readings of one task each that tell of records in the minute before
  age_min_ms double precision not null,  -- Time from the record's timestamp until it came to the node: least; negative: a clock is ahead
  age_mean_ms double precision not null,  -- The same: mean of the readings' means
  age_max_ms double precision not null,  -- The same: longest
  ages_ms jsonb not null,  -- The same: mean of each reading, sorted
  primary key (hour, cluster, endpoint, node)
) partition by range (hour);
comment on table metrics.stream_node_hourly is
'An hour of a node of a Kafka Streams topology in one process: how old records are that come to it.';

create table detect.latency_target (
  position integer primary key,  -- Order in the config
  key_pattern text not null,  -- Regular expression on an application's key
  seconds double precision not null  -- From a record's timestamp to the end of its way
);
comment on table detect.latency_target is
'How soon applications are to have processed a record, by patterns of the config; the first that matches counts.';

-- Brokers as their cluster lists them: that one is missing is told by the cluster, not by our own way to it.
create table inventory.broker_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  broker_id integer not null,  -- Broker's id
  host text,  -- Host by which clients reach it; null: it isn't listed
  is_listed boolean not null,  -- Whether the cluster listed it at one of two looks
  replicas integer not null,  -- Replicas that it has, in sync or not
  observed_at timestamptz not null,  -- When it was first asked
  primary key (hour, cluster, broker_id)
) partition by range (hour);
comment on table inventory.broker_hourly is
'Brokers that a cluster lists, and those that it doesn''t list and that have replicas.';

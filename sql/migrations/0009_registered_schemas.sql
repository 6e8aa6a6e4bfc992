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
);

-- Texts of registered schemas by their id, once each: they never change.
create table inventory.registered_schema (
  cluster text not null,  -- Kafka cluster
  schema_id integer not null,  -- Id that frames values: magic byte 0, then this
  schema_type text not null,  -- AVRO, JSON or PROTOBUF
  definition text not null,  -- The schema
  schema_references jsonb,  -- Schemas that it builds on: [{name, subject, version}, …]; null: none
  primary key (cluster, schema_id)
);

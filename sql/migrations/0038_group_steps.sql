-- Rebalances of consumer groups one by one: why a group comes to no rest shows in who leaves it, and at which pace.
create table metrics.group_step_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  group_id text not null,  -- Group
  generation integer not null,  -- Generation that began
  began_at timestamptz not null,  -- When its members had joined (UTC)
  members integer,  -- Members; null: of a newer protocol, whose records don't tell them
  gone jsonb,  -- Members of the generation before that are gone, a JSON list of {client_id, host}; null: unknown
  come jsonb,  -- Members that the generation before didn't have, a JSON list of {client_id, host}; null: unknown
  poll_interval_ms integer,  -- Longest max.poll.interval.ms of its members
  session_timeout_ms integer,  -- Longest session.timeout.ms of its members
  primary key (hour, cluster, group_id, generation, began_at)
) partition by range (hour);
comment on table metrics.group_step_hourly is
'A rebalance of a consumer group: a generation that began in the hour.';

-- Leaders that lacked records when they were elected, and leaders that have no listener for us.
alter table metrics.broker_hourly
  add column unclean_elections double precision;  -- Unclean elections of leaders that it counted in covered_seconds: each controller of KRaft counts all, of ZooKeeper's the active one; null: it is none, or doesn't tell (KRaft before Kafka 3.9)
alter table metrics.partition_hourly
  add column leader_error text;  -- Why the metadata name no leader, by Kafka's name for it; LISTENER_NOT_FOUND: there is one, without the listener that was asked; null: a leader is named
comment on column metrics.partition_hourly.leader is
'Leader''s broker id; null: at two looks the metadata named none';

-- The racks (on AWS: zones) of brokers, and the partitions whose replicas would be lost with one.
alter table inventory.broker_hourly
  add column rack text;  -- Its broker.rack; null: it has none, or isn't listed, or the cluster didn't tell

alter table inventory.topic_hourly
  add column one_rack_partitions integer;  -- Partitions whose replicas, of which there are several, all lie in one rack; null: of no partition that is known, and of some the racks aren't

-- Samza's jobs stand among groups.
comment on column inventory.consumer_group_hourly.protocol is
'classic, consumer (KIP-848) or streams (KIP-1071: its members aren''t told); samza: a job, by its checkpoints';

-- A group whose committed offsets couldn't be asked has an unknown number of partitions, not none.
alter table metrics.consumer_group_hourly
alter column topics drop not null,
alter column partitions drop not null,
alter column lag_unknown_partitions drop not null;
comment on column metrics.consumer_group_hourly.topics is 'Topics with commits; null: its commits aren''t known';
comment on column metrics.consumer_group_hourly.partitions is 'Partitions with commits; null: its commits aren''t known';
comment on column metrics.consumer_group_hourly.lag_unknown_partitions is
'Partitions with commits whose lag isn''t known; null: its commits aren''t known';
comment on column inventory.consumer_group_hourly.state is
'STABLE, EMPTY, DEAD, …; null: it couldn''t be asked, or no coordinator lists the group';
comment on column inventory.consumer_group_hourly.observed_at is
'When it was asked; where no coordinator lists the group, when it last was there';

-- Replicas take a row for each topic in a directory of a broker, in place of one each: half of what an hour of a large
-- cluster took was their names.
create temporary table by_topic as
select
  hour, cluster, topic, broker_id, log_dir, is_future,
  count(*)::integer as replicas,
  sum(size_bytes)::bigint as size_bytes,
  jsonb_object_agg(partition, size_bytes) as partition_bytes,
  coalesce(jsonb_object_agg(partition, offset_lag) filter (where offset_lag > 0), '{}') as partition_lags
from metrics.replica_sample
group by hour, cluster, topic, broker_id, log_dir, is_future;
truncate metrics.replica_sample;
alter table metrics.replica_sample
  drop constraint replica_sample_pkey,
  drop column partition,
  drop column offset_lag,
  add column replicas integer not null,  -- Replicas of the topic there
  add column partition_bytes jsonb not null,  -- Size of each one's log: {partition: bytes}
  add column partition_lags jsonb not null,  -- Records that they lack of the high watermark (future ones: of the present one), where any: {partition: records}
  add primary key (hour, cluster, topic, broker_id, log_dir, is_future) with (fillfactor = 100);
comment on table metrics.replica_sample is
'Replicas of a topic in a directory of a broker: how many, and how large they are. One by one in the view replicas.';
comment on column metrics.replica_sample.size_bytes is 'Size of their logs';
comment on column metrics.replica_sample.is_future is
'They move here from another directory of the broker and aren''t whole yet';
insert into metrics.replica_sample
(hour, cluster, topic, broker_id, log_dir, is_future, replicas, size_bytes, partition_bytes, partition_lags)
select hour, cluster, topic, broker_id, log_dir, is_future, replicas, size_bytes, partition_bytes, partition_lags
from by_topic order by hour, cluster, topic, broker_id, log_dir, is_future;
drop table by_topic;

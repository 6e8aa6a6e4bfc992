-- Replicas of partitions with their sizes, in every retained hour.
create or replace view public.replicas as
select
  r.hour,  -- Hour that it was read for (UTC)
  r.cluster,  -- Kafka cluster
  r.topic,  -- Topic
  part.key::integer as partition,  -- Partition
  r.broker_id,  -- Broker id
  r.log_dir,  -- Log directory on that broker
  r.is_future,  -- Future replica: it is being moved here from another log directory of the broker
  part.value::bigint as size_bytes,  -- Size of its log
  coalesce((r.partition_lags ->> part.key)::bigint, 0) as offset_lag  -- Lag behind the high watermark, in records; for a future replica: lag behind the current replica
from metrics.replica_sample as r
cross join lateral jsonb_each_text(r.partition_bytes) as part (key, value);

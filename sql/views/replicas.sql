-- Replicas of partitions, each with its size, in every hour that is kept.
create or replace view public.replicas as
select
  r.hour,  -- The hour it was read for (UTC)
  r.cluster,  -- Kafka cluster
  r.topic,  -- Topic
  part.key::integer as partition,  -- Partition
  r.broker_id,  -- Broker that holds it
  r.log_dir,  -- Directory on that broker
  r.is_future,  -- It moves here from another directory of the broker and isn't whole yet
  part.value::bigint as size_bytes,  -- Size of its log
  coalesce((r.partition_lags ->> part.key)::bigint, 0) as offset_lag  -- Records that it lacks of the high watermark; of a future replica, of the present one
from metrics.replica_sample as r
cross join lateral jsonb_each_text(r.partition_bytes) as part (key, value);

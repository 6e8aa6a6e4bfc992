-- The time of each hour over which JMX counted a cluster's bytes by topic: what they are compared with is of this time.
create view public.topic_counted as
select
  hour,  -- The hour (UTC)
  cluster,  -- Kafka cluster
  min(counted_from) as counted_from,  -- Start of that time
  max(counted_to) as counted_to,  -- Its end
  max(covered_seconds) as seconds  -- Seconds of it that were counted
from metrics.topic_hourly
where bytes_out is not null and covered_seconds > 0
group by hour, cluster;

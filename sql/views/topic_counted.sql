-- Time span in each hour in which JMX counters cover a cluster's bytes by topic. Compare these bytes only with data of the same span.
create view public.topic_counted as
select
  hour,  -- Start of the hour (UTC)
  cluster,  -- Kafka cluster
  min(counted_from) as counted_from,  -- Start of the span (UTC)
  max(counted_to) as counted_to,  -- End of the span (UTC)
  max(covered_seconds) as seconds  -- Seconds of it with counters
from metrics.topic_hourly
where bytes_out is not null and covered_seconds > 0
group by hour, cluster;

-- Number of brokers of each cluster in each hour, and those without data. A cluster that has topics but no brokers in the config has a row, too.
create view public.cluster_brokers as
select
  k.hour,  -- Start of the hour (UTC)
  k.cluster,  -- Kafka cluster
  count(distinct b.endpoint) as brokers,  -- Brokers in the config
  count(distinct b.endpoint) filter (where b.instance_id is null) as brokers_unplaced,  -- Brokers whose instance is not known
  count(distinct b.endpoint) filter (where b.samples is null) as brokers_silent,  -- Brokers that did not respond over JMX
  sum(b.replication_bytes_out_per_second) as replicated_bytes_per_second,  -- Bytes sent to followers per second
  max(b.under_replicated_partitions_max) as under_replicated_partitions  -- Largest value that one of them reported
from (
  select
    hour,
    cluster
  from metrics.broker_hourly
  union
  select
    hour,
    cluster
  from inventory.topic_hourly
) as k
left join metrics.broker_hourly as b using (hour, cluster)
group by k.hour, k.cluster;

-- How many brokers each cluster has in each hour, and which of them can't be judged. A cluster without any has topics.
create view public.cluster_brokers as
select
  k.hour,  -- The hour (UTC)
  k.cluster,  -- Kafka cluster
  count(distinct b.endpoint) as brokers,  -- Brokers of the config
  count(distinct b.endpoint) filter (where b.instance_id is null) as brokers_unplaced,  -- Whose instance isn't known
  count(distinct b.endpoint) filter (where b.samples is null) as brokers_silent,  -- That didn't answer over JMX
  sum(b.replication_bytes_out_per_second) as replicated_bytes_per_second,  -- What their followers are sent
  max(b.under_replicated_partitions_max) as under_replicated_partitions  -- The largest that one of them said
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

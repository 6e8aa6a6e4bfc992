-- Monthly AWS list prices by application in the newest gathered hour: EBS volumes, logs of its internal topics, and its EC2 instances.
create or replace view public.application_costs as
with newest as (
  select max(hour) as hour from detect.load
),

-- Volumes by their tag, otherwise by the pod that claims them, otherwise by the tag of their instance.
volume as (
  select
    coalesce(v.application, case when p.volume_id is null then i.application else p.claim_application end) as application,
    inventory.ebs_usd_per_month(
      v.region, v.volume_type, v.size_gib, v.provisioned_iops, v.provisioned_throughput_mib_s
    ) as usd
  from inventory.volume_hourly as v
  left join inventory.instance_hourly as i using (hour, account, region, instance_id)
  left join inventory.pod_volumes((select hour from newest)) as p on v.volume_id = p.volume_id
  where v.hour = (select hour from newest)
),

-- Logs of the internal topics of applications.
log as (
  select
    t.cluster,
    t.topic,
    t.application_id,
    m.log_bytes
  from inventory.topic_hourly as t
  inner join metrics.topic_hourly as m using (hour, cluster, topic)
  where t.hour = (select hour from newest) and t.application_id is not null
),

-- The three kinds of cost, each with the same columns.
part as (
  select
    application,
    1 as volumes,
    usd as volume_usd,
    (usd is null)::integer as without_price,
    0 as topics,
    null::double precision as log_bytes,
    null::double precision as log_usd,
    0 as instances
  from volume
  union all
  select
    l.application_id,
    0,
    null,
    0,
    1,
    l.log_bytes,
    l.log_bytes / power(1024, 3) * p.usd_per_gib,
    0
  from log as l
  left join inventory.broker_storage_price((select hour from newest)) as p on l.cluster = p.cluster
  union all
  select
    i.application,
    0,
    null,
    0,
    0,
    null,
    null,
    1
  from inventory.instance_hourly as i
  where i.hour = (select hour from newest)
)

select
  application,  -- Application (tag, or Kafka Streams application id); null: unassigned
  sum(volumes) as volumes,  -- EBS volumes
  sum(volume_usd) as volumes_usd_per_month,  -- List price of these volumes, in USD per month; null: none is known
  sum(without_price) as volumes_without_price,  -- Volumes without a known price, not included
  sum(topics) as topics,  -- Internal topics of the application
  sum(log_bytes) as topic_log_bytes,  -- Size of their logs in bytes, all replicas
  sum(log_usd) as topic_logs_usd_per_month,  -- Share of the price of the brokers' volumes, by size, in USD per month; already part of the cluster's volumes
  sum(instances) as instances  -- EC2 instances
from part
group by application;

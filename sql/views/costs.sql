-- Costs and savings by AWS list prices, USD a month, in the newest gathered hour, by application, owner, and cluster: EBS volumes, logs of topics with their traffic, and the savings of open findings. Topic logs are on the brokers' volumes: do not add the two.
create or replace view public.costs as
with newest as (
  select max(hour) as hour from inventory.volume_hourly
),

broker as (
  select distinct
    b.cluster,
    b.instance_id
  from metrics.broker_hourly as b
  where b.hour = (select hour from newest) and b.instance_id is not null
),

volume as (
  select
    -- A volume that a pod claims belongs to the pod, not to the node that it runs on.
    coalesce(v.application, case when p.volume_id is null then i.application else p.claim_application end) as application,
    coalesce(v.owner, case when p.volume_id is null then i.owner else p.claim_owner end) as owner,
    case when p.volume_id is null then b.cluster else p.claim_cluster end as cluster,
    null as title,
    inventory.ebs_usd_per_month(
      v.region, v.volume_type, v.size_gib, v.provisioned_iops, v.provisioned_throughput_mib_s
    ) as usd,
    null::integer as partitions,
    null::double precision as bytes_in_per_second,
    null::double precision as bytes_out_per_second
  from inventory.volume_hourly as v
  left join inventory.instance_hourly as i using (hour, account, region, instance_id)
  left join broker as b using (instance_id)
  left join inventory.pod_volumes((select hour from newest)) as p on v.volume_id = p.volume_id
  where v.hour = (select hour from newest)
),

log as (
  select
    r.cluster,
    r.topic,
    sum(r.size_bytes) as bytes
  from metrics.replica_sample as r
  where r.hour = (select max(hour) from metrics.replica_sample)
  group by r.cluster, r.topic
),

carried as (
  select
    i.cluster,
    i.topic,
    i.partitions,
    r.bytes_in / nullif(r.covered_seconds, 0) as bytes_in_per_second,
    r.bytes_out / nullif(r.covered_seconds, 0) as bytes_out_per_second
  from inventory.topic_hourly as i
  left join metrics.topic_hourly as r using (hour, cluster, topic)
  where i.hour = (select max(hour) from metrics.replica_sample)
),

topic as (
  select
    t.application,
    t.owner,
    l.cluster,
    null as title,
    l.bytes / power(1024, 3) * p.usd_per_gib as usd,
    c.partitions,
    c.bytes_in_per_second,
    c.bytes_out_per_second
  from log as l
  left join carried as c on l.cluster = c.cluster and l.topic = c.topic
  left join public.resource as t on t.key = public.resource_key('topic', l.cluster, l.topic)
  left join inventory.broker_storage_price((select hour from newest)) as p on l.cluster = p.cluster
),

advice as (
  select
    e.application,
    e.owner,
    e.identity ->> 'cluster' as cluster,
    f.title,
    case
      when e.metrics ->> 'advised_price_usd_per_month' is not null
        then (e.metrics ->> 'price_usd_per_month')::double precision
        - (e.metrics ->> 'advised_price_usd_per_month')::double precision
      else coalesce(
        (e.metrics ->> 'saved_usd_per_month')::double precision, (e.metrics ->> 'usd_per_month')::double precision
      )
    end as usd,
    null::integer as partitions,
    null::double precision as bytes_in_per_second,
    null::double precision as bytes_out_per_second
  from detect.detector_run as j
  inner join detect.evaluation as e using (detector, hour)
  inner join detect.detector as f using (detector)
  where e.status = 'firing' and j.hour = (select max(hour) from detect.detector_run where status = 'evaluated')
  and (
    j.detector in ('topic_retention_wasteful', 'topic_compaction_wasteful', 'changelog_abandoned', 'topic_abandoned')
    -- A volume that is advised to become cheaper, such as io1 to gp3.
    or (e.metrics ->> 'advised_price_usd_per_month')::double precision
    < (e.metrics ->> 'price_usd_per_month')::double precision
  )
)

select
  kind,  -- volumes, logs or advice
  application,  -- Application: of a volume its tag, otherwise that of the pod that claims it or of its instance; of a topic the one that it belongs to; null: none
  owner,  -- Owner; null: unassigned
  cluster,  -- Kafka cluster: of a volume that of the pod that claims it, otherwise of the broker on its instance; null: none
  title,  -- For advice the title of the detector, otherwise null
  count(*) as resources,  -- Volumes, topics or findings
  count(*) filter (where usd is null) as without_price,  -- Those without a known price; they are not included
  sum(usd) as usd_per_month,  -- List price, or savings for advice
  sum(partitions) as partitions,  -- Partitions of the topics, without replicas; null for volumes and advice
  sum(bytes_in_per_second) as bytes_in_per_second,  -- Bytes produced to the topics, mean of the hour, from brokers that responded over JMX
  sum(bytes_out_per_second) as bytes_out_per_second  -- Bytes sent to consumers of the topics
from (
  select 'volumes' as kind, * from volume
  union all
  select 'logs' as kind, * from topic
  union all
  select 'advice' as kind, * from advice
) as each
group by kind, application, owner, cluster, title
order by kind asc, usd_per_month desc nulls last, application asc, owner asc, cluster asc, title asc;

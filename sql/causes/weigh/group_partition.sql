-- Partitions of the consumer groups in the affected clusters: the leader, the member's instance, on Kubernetes also the
-- process of its pod (pods have addresses of their own), whether it is late, whether records before the last stable offset
-- wait there, and the records of the hour that the group has to read there.
with late as (
  select distinct
    e.cluster,
    e.identity ->> 'group_id' as group_id,
    p.topic,
    p.partition
  from effect as e
  cross join lateral jsonb_to_recordset(e.affected) as p (topic text, partition integer)
  where e.parts in ('leader', 'member', 'partition') and p.partition is not null
),

-- Pods in the network of their node share its address: there the process of a member is unknown.
pod as (
  select
    cluster,
    substring(endpoint from '://([^/:]+)') as address,
    min(instance_id) as instance_id,
    case when min(endpoint) = max(endpoint) then min(public.resource_key('process', cluster, endpoint)) end as process
  from inventory.pod_hourly
  where hour = :hour and role = 'app' and endpoint is not null
  group by cluster, substring(endpoint from '://([^/:]+)')
),

host as (
  select
    h.cluster,
    h.host,
    min(public.resource_key('instance', i.account, i.region, i.instance_id)) as member,
    min(p.process) as process
  from (
    select distinct
      cluster,
      host,
      ltrim(host, '/') as address
    from metrics.consumer_partition_hourly
    where hour = :hour and host is not null
  ) as h
  left join pod as p on h.cluster = p.cluster and h.address = p.address
  left join inventory.instance_hourly as i
    on i.hour = :hour and (h.address in (i.private_ip, i.private_dns) or p.instance_id = i.instance_id)
  group by h.cluster, h.host
)

select
  c.cluster,
  c.group_id,
  c.topic,
  c.partition,
  p.leader,
  h.member,
  h.process,
  l.partition is not null as is_late,
  c.committed_offset < p.last_stable_offset as is_before_stable,
  greatest(c.records_consumed, c.arriving_per_second * extract(epoch from interval '1 hour')) as records
from metrics.consumer_partition_hourly as c
left join metrics.partition_hourly as p
  on c.hour = p.hour and c.cluster = p.cluster and c.topic = p.topic and c.partition = p.partition
left join host as h on c.cluster = h.cluster and c.host = h.host
left join late as l
  on c.cluster = l.cluster and c.group_id = l.group_id and c.topic = l.topic and c.partition = l.partition
where c.hour = :hour and c.cluster = any(
  array(select distinct e.cluster from effect as e where e.parts in ('leader', 'member', 'partition'))
)

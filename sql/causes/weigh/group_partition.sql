-- Partitions of the consumer groups in the affected clusters: the leader, the member's instance, whether it is late, whether
-- records before the last stable offset wait there, and the records of the hour that the group has to read there.
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

host as (
  select
    h.cluster,
    h.host,
    min(public.resource_key('instance', i.account, i.region, i.instance_id)) as member
  from (
    select distinct
      cluster,
      host
    from metrics.consumer_partition_hourly
    where hour = :hour and host is not null
  ) as h
  inner join inventory.instance_hourly as i on i.hour = :hour and ltrim(h.host, '/') in (i.private_ip, i.private_dns)
  group by h.cluster, h.host
)

select
  c.cluster,
  c.group_id,
  c.topic,
  c.partition,
  p.leader,
  h.member,
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

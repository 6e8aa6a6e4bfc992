/*
title: Where the members of a group run
subject: consumers
description: >
  Members of a consumer group in the newest hour: client, host, EC2 instance, and assigned partitions.
params:
  group_id: {type: text, description: Consumer group, example: billing}
  cluster: {type: text, description: Kafka cluster, default: null, example: orders-prod}
columns:
  cluster: Kafka cluster
  member_id: Member id
  client_id: client.id
  host: Address that it connects from
  instance_id: EC2 instance with this address; null if not known
  instance_name: Tag Name of the instance
  assigned_topics: Topics with assigned partitions
  assigned_partitions: Assigned partitions
  hour: Start of the hour (UTC)
*/
with -- The newest gathered hour.
newest as (
  select max(hour) as hour from detect.load
)

select
  m.cluster,
  m.member_id,
  m.client_id,
  ltrim(m.host, '/') as host,
  i.instance_id,
  i.name as instance_name,
  a.topics as assigned_topics,
  a.partitions as assigned_partitions,
  m.hour
from newest as n
inner join inventory.consumer_member_hourly as m on n.hour = m.hour
left join inventory.instance_hourly as i on m.hour = i.hour and ltrim(m.host, '/') in (i.private_ip, i.private_dns)
cross join lateral (
  select
    count(*) as topics,
    coalesce(sum(jsonb_array_length(t.value)), 0) as partitions
  from jsonb_each(m.assignment) as t
) as a
where m.group_id = :group_id and (:cluster is null or m.cluster = :cluster)
order by m.cluster asc, host asc, m.client_id asc, m.member_id asc

/*
title: Internal topics that the group reads
unit: ""
kind: table
why: "Owner of each topic, last commit of the group, and bytes out to all consumers, including restores of the owner."
*/
with group_topic as (
  select
    a.topic,
    m.client_id || ' on ' || m.host as reader,
    cast(null as timestamptz) as committed_at
  from inventory.consumer_member_hourly as m
  cross join lateral jsonb_object_keys(m.assignment) as a (topic)
  where m.hour = :hour and m.cluster = :cluster and m.group_id = :group_id
  union all
  select
    topic,
    client_id || ' on ' || host as reader,
    committed_at
  from metrics.consumer_partition_hourly
  where hour = :hour and cluster = :cluster and group_id = :group_id
)

select
  t.topic,
  t.kind,
  t.application_id,
  min(r.reader) as reader,
  max(r.committed_at) as last_commit_at,
  max(b.bytes_out / nullif(b.covered_seconds, 0)) as sent_bytes_per_second
from group_topic as r
inner join inventory.topic_hourly as t
  on t.hour = :hour and t.cluster = :cluster and r.topic = t.topic
left join metrics.topic_hourly as b on t.hour = b.hour and t.cluster = b.cluster and t.topic = b.topic
where t.kind in ('changelog', 'repartition') and t.application_id <> :group_id
group by t.topic, t.kind, t.application_id
order by t.application_id, t.topic

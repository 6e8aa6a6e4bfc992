/*
title: Partition counts of the application's topics
unit: partitions
kind: lines
why: "Topics that the application reads or owns. A line that leaves the others is the topic that got more partitions."
*/
select
  t.hour as at,
  t.topic as series,
  max(t.partitions)::double precision as value
from inventory.topic_hourly as t
where t.cluster = :cluster
and t.hour in (
  select :hour - make_interval(days => n) from generate_series(0, 14) as n
)
and (
  t.application_id = :application_id
  or exists (
    select 1 from metrics.consumer_partition_hourly as c
    where c.hour = :hour and c.cluster = t.cluster and c.group_id = :application_id and c.topic = t.topic
  )
)
group by t.hour, t.topic
order by t.hour, t.topic

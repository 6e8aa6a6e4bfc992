/*
title: Consumer lag by topic
unit: seconds
kind: lines
why: "Each line is the partition of a topic with the highest lag; a line that rises for hours does not recover."
*/
select
  p.hour as at,
  p.topic as series,
  max(p.lag_seconds) as value
from metrics.consumer_partition_hourly as p
where p.cluster = :cluster and p.group_id = :group_id
and p.hour > :hour - interval '24 hours' and p.hour <= :hour
group by p.hour, p.topic
order by p.hour, p.topic

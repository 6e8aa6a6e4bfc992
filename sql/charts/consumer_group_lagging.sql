/*
title: Lag of the group by hour
unit: seconds
kind: lines
why: "Each line is the group's latest partition of a topic; a line that rises for hours won't mend itself."
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

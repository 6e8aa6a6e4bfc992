-- The first changed paths of a topic's values in an hour; what breaks a reader first.
select
  c.path,
  replace(c.change, '_', ' ') as change,
  c.old_type,
  c.new_type
from metrics.state_store_change_hourly as c
where c.hour = :hour and c.cluster = :cluster and c.topic = :topic
order by c.strict_only asc, c.breaks_backward desc, c.breaks_forward desc, c.old_version asc, c.path asc
limit cast(:most as integer)

-- A connector, hour by hour: its tasks, and the state and class that changes are found by.
select
  h.hour,
  c.tasks,
  t.failed_tasks,
  jsonb_build_object('state', c.state, 'worker', c.worker, 'class', c.connector_class, 'tasks', c.tasks) as state
from generate_series(cast(:start as timestamptz), cast(:finish as timestamptz), interval '1 hour') as h (hour)
left join inventory.connector_hourly as c
  on h.hour = c.hour and c.cluster = :cluster and c.connect_cluster = :connect_cluster and c.connector = :connector
left join lateral (
  select count(*) filter (where t.state = 'FAILED') as failed_tasks
  from inventory.connector_task_hourly as t
  where t.hour = h.hour and t.cluster = c.cluster and t.connect_cluster = c.connect_cluster and t.connector = c.connector
) as t on true
order by h.hour

/*
title: Connector or task failed
resource_kind: connector
owner_role: application
maturity: stable
reads: [inventory.connector_hourly, inventory.connector_task_hourly]
key_metrics: [state, failed_tasks, tasks, failed_task_ids, workers]
verdicts:
  connector_failed:
    status: firing
    severity: critical
    message: "Connector {{ connector }} of Connect cluster {{ connect_cluster }} is in state FAILED and runs no task."
    details: &details
      - "{% if workers %}Workers: {{ workers }}.{% endif %}"
      - "{% if error %}The stack trace begins with `{{ error }}`.{% endif %}"
    impact: &stopped "{{ 'No record reaches the target, and the lag of group ' ~ group_id ~ ' grows' if group_id else 'No new record from the source arrives in Kafka' }}."
    actions:
      - &cause "Fix the cause that the stack trace names. The full trace is in the connector's status and in the worker's log."
      - "Restart the connector with its failed tasks: Kafka Connect does not restart them automatically."
      - &prevent "Prevent it: set errors.tolerance=all and a dead letter queue for records that cannot be converted."
    commands: &commands
      - "curl -s {{ status_url }}"
      - "curl -s -X POST {{ restart_url }}"
  all_tasks_failed:
    status: firing
    severity: critical
    message: "Connector {{ connector }} of Connect cluster {{ connect_cluster }} moves no data: {{ 'its only task' if tasks.value == 1 else 'all ' ~ tasks ~ ' tasks' }} failed."
    details: *details
    impact: *stopped
    actions:
      - *cause
      - &restart "Restart the failed tasks: Kafka Connect does not restart them automatically."
      - *prevent
    commands: *commands
  some_tasks_failed:
    status: firing
    severity: warning
    message: "{{ failed_tasks }} of {{ tasks | counted('task') }} of connector {{ connector }} (Connect cluster {{ connect_cluster }}) failed."
    details: *details
    impact: "{{ 'The partitions of the failed tasks are not read: their lag grows in group ' ~ group_id if group_id else 'Data that the failed tasks read from the source does not arrive in Kafka' }}."
    actions:
      - *cause
      - *restart
      - *prevent
    commands: *commands
  unassigned:
    status: firing
    severity: warning
    message: "Connector {{ connector }} of Connect cluster {{ connect_cluster }} has been unassigned for more than an hour: no worker runs it."
    impact: *stopped
    actions:
      - "Check the workers: either none is running, or they rebalance continuously."
      - "Check whether the class of the connector is installed on every worker."
    commands: ["curl -s {{ status_url }}", "curl -s {{ plugins_url }}"]
  running: {status: ok, message: "Connector {{ connector }} runs with {{ tasks | counted('task') }}."}
  paused: {status: ok, message: "Connector {{ connector }} was {{ state | lower }} through the REST API."}
  rebalancing: {status: ok, message: "Connector {{ connector }} is being assigned to a worker."}
  no_tasks:
    status: unknown
    message: "Not evaluated: connector {{ connector }} is in state RUNNING without a task."
causes:
  failed_connector_stops_group: [connector_failed, all_tasks_failed, some_tasks_failed, unassigned]
open_after_hours: 1
clear_after_hours: 1
description: |
  The states that the REST API of Kafka Connect reports. A connector or a task in state FAILED stays so until somebody
  restarts it. Tasks are UNASSIGNED during each rebalance of the workers; that fires only if the connector was unassigned an
  hour before as well. A paused or stopped connector does not fire.
runbook: |
  ## Meaning
  A connector of Kafka Connect, or some of its tasks, ended with an exception.

  ## Impact
  A sink stops writing to its target and its group's lag grows; a source stops producing to Kafka.

  ## Diagnosis
  1. `GET /connectors/NAME/status` has the stack trace of each failed task; the deepest "Caused by" is the cause.
  2. A converter or transformation that fails on one record fails again after each restart.
  3. Failures of all connectors at once are failures of the workers or of the cluster.

  ## Mitigation
  1. Fix the cause: credentials, the target, a schema, or the record.
  2. `POST /connectors/NAME/restart?includeTasks=true&onlyFailed=true`.
  3. Set errors.tolerance=all and errors.deadletterqueue.topic.name for sinks that may skip records.
limitations: |
  The REST API knows the current state only: a task that failed and was restarted within the hour is not detected. Connect
  clusters that are not configured under `kafka.connect` are not evaluated.
*/
with task as (
  select
    cluster,
    connect_cluster,
    connector,
    count(*) filter (where state = 'FAILED') as failed,
    count(*) filter (where state = 'UNASSIGNED') as unassigned,
    string_agg(task_id::text, ', ' order by task_id) filter (where state = 'FAILED') as failed_ids,
    string_agg(distinct worker, ', ') filter (where state = 'FAILED') as workers,
    min(trace) filter (where state = 'FAILED') as trace
  from inventory.connector_task_hourly
  where hour = :hour
  group by cluster, connect_cluster, connector
),

unassigned_before as (
  select
    c.cluster,
    c.connect_cluster,
    c.connector,
    true as is_long
  from inventory.connector_hourly as c
  where c.hour = :hour - interval '1 hour' and c.state = 'UNASSIGNED'
)

select
  case
    when c.state = 'FAILED' then 'connector_failed'
    when t.failed = c.tasks then 'all_tasks_failed'
    when t.failed > 0 then 'some_tasks_failed'
    when c.state = 'UNASSIGNED' and u.is_long then 'unassigned'
    when c.state in ('UNASSIGNED', 'RESTARTING') or t.unassigned > 0 then 'rebalancing'
    when c.state in ('PAUSED', 'STOPPED') then 'paused'
    when c.tasks = 0 then 'no_tasks'
    else 'running'
  end as reason,
  c.cluster,
  c.connect_cluster,
  c.connector,
  c.connector_type,
  c.group_id,
  c.url || '/status' as status_url,
  c.url || '/restart?includeTasks=true&onlyFailed=true' as restart_url,
  regexp_replace(c.url, '/connectors/[^/]*$', '/connector-plugins') as plugins_url,
  c.state,
  c.tasks,
  coalesce(t.failed, 0) as failed_tasks,
  t.failed_ids as failed_task_ids,
  coalesce(t.workers, c.worker) as workers,
  left(split_part(coalesce(c.trace, t.trace), E'\n', 1), 200) as error
from inventory.connector_hourly as c
left join task as t using (cluster, connect_cluster, connector)
left join unassigned_before as u using (cluster, connect_cluster, connector)
where c.hour = :hour

/*
title: Cluster has no controller, or more than one
resource_kind: cluster
owner_role: platform
maturity: stable
reads: [metrics.broker_hourly, metrics.broker_sample]
params:
  expected: {default: 1, unit: controllers, why: "a cluster has exactly one active controller"}
key_metrics: [active_controllers, controllers, silent_endpoints]
verdicts:
  several:
    status: firing
    severity: critical
    message: "{{ active_controllers }} controllers say they are active: {{ active_brokers }}."
    actions:
      - "Find the one with the older epoch and restart it."
    commands: ["kafka-metadata-quorum.sh --bootstrap-server {{ bootstrap_servers }} describe --status"]
  none:
    status: firing
    severity: critical
    message: "None of its {{ controllers }} controllers is active."
    actions:
      - "Start the controllers that are down: without a majority of the voters there is no election."
    commands: ["kafka-metadata-quorum.sh --bootstrap-server {{ bootstrap_servers }} describe --status"]
  one: {status: ok, message: "The active controller is {{ active_brokers }}."}
  silent:
    status: unknown
    message: "No active controller among those that answered, but {{ silent_endpoints }} of {{ endpoints }} endpoints are silent."
  untold: {status: unknown, message: "{{ untold_controllers | counted('controller') }} answered without saying whether they are active: more than one may be."}
  not_configured: {status: unknown, message: "No configured endpoint of the cluster runs a controller."}
open_after_hours: 1
clear_after_hours: 1
runbook: |
  1. None: nothing is elected, no leader moves, no topic is made. Start the controllers that are down; without a majority
     of the voters there is no election. Then look at their logs for the metadata quorum.
  2. More than one: find the one with the older epoch (kafka-metadata-quorum describe --status) and restart it.
limitations: |
  Controllers that aren't under `jmx` aren't seen. Where an endpoint is silent, none found isn't judged: the silent one
  may be active. One that is active is enough to be sure of, silent ones or not. A change of controller between two
  samples counts as neither none nor two.
*/
with reported as (
  select
    cluster,
    endpoint,
    min(value) as least,
    max(value) as most
  from metrics.broker_sample
  where hour = :hour and metric = 'active_controllers'
  group by cluster, endpoint
),

counted as (
  select
    b.cluster,
    count(*) as endpoints,
    count(*) filter (where b.samples is null) as silent,
    count(t.most) as controllers,
    count(t.endpoint) filter (where t.most is null) as untold,
    coalesce(sum(t.least), 0) as active_throughout,
    coalesce(sum(t.most), 0) as active_at_any_time,
    string_agg(coalesce(b.broker_id::text, b.endpoint), ', ' order by b.broker_id, b.endpoint)
      filter (where t.most > 0) as active_brokers
  from metrics.broker_hourly as b
  left join reported as t on b.cluster = t.cluster and b.endpoint = t.endpoint
  where b.hour = :hour
  group by b.cluster
)

select
  case
    when active_throughout > :expected then 'several'
    when untold > 0 then 'untold'
    when active_at_any_time >= :expected then 'one'
    when silent > 0 then 'silent'
    when controllers = 0 then 'not_configured'
    else 'none'
  end as reason,
  cluster,
  active_throughout as active_controllers,
  active_brokers,
  controllers,
  untold as untold_controllers,
  endpoints,
  silent as silent_endpoints
from counted

/*
title: Active controller count is not 1
resource_kind: cluster
owner_role: platform
maturity: stable
reads: [metrics.broker_hourly, metrics.broker_sample]
params:
  expected: {default: 1, unit: controllers, why: "a cluster has exactly one active controller"}
key_metrics: [active_controllers, controllers, unresponsive_endpoints]
verdicts:
  multiple_active:
    status: firing
    severity: critical
    message: "Cluster {{ cluster }} has {{ active_controllers }} active controllers (IDs {{ active_brokers }}), expected {{ expected }}."
    impact: "Brokers may follow different controllers, so that leader elections and topic changes conflict."
    actions:
      - "Compare the leader epochs of the controllers and restart the one with the older epoch."
      - "Check the network between the controllers for a partition."
    commands: ["kafka-metadata-quorum.sh --bootstrap-server {{ bootstrap_servers }} describe --status"]
  none_active:
    status: firing
    severity: critical
    message: "Cluster {{ cluster }} has no active controller: none of its {{ controllers | counted('controller') }} reports itself active."
    impact: "No leader is elected and no topic or partition can be created or changed; one broker failure makes partitions unavailable."
    actions:
      - "Start the controllers that are down: without a majority of the voters no controller is elected."
      - "Check the controller logs for errors of the metadata quorum."
    commands: ["kafka-metadata-quorum.sh --bootstrap-server {{ bootstrap_servers }} describe --status"]
  one_active: {status: ok, message: "Cluster {{ cluster }} has one active controller (ID {{ active_brokers }})."}
  no_response:
    status: unknown
    message: "Not evaluated: {{ unresponsive_endpoints }} of {{ endpoints | counted('endpoint') }} did not respond over JMX, and no other reported an active controller."
  not_reported:
    status: unknown
    message: "Not evaluated: {{ unreporting_controllers | counted('controller') }} did not report ActiveControllerCount, so a second controller may be active."
  not_configured: {status: unknown, message: "Not evaluated: no JMX endpoint configured for cluster {{ cluster }} runs a controller."}
open_after_hours: 1
clear_after_hours: 1
description: |
  The sum of ActiveControllerCount over all endpoints of the cluster. More than one: the controllers were active in every
  sample of the hour. None: no controller was active in any sample, and every endpoint responded.
runbook: |
  ## Meaning
  Exactly one controller of a cluster is active. It elects partition leaders and applies changes of metadata.
  ## Impact
  Without an active controller no leader is elected and no topic is created. With two, brokers receive conflicting metadata.
  ## Diagnosis
  1. List the quorum: `kafka-metadata-quorum.sh describe --status` prints the leader, its epoch, and the voters.
  2. Check which controllers are down and what their logs report about the metadata quorum.
  ## Mitigation
  1. None active: start the controllers that are down until a majority of the voters runs.
  2. More than one active: restart the controller with the older epoch.
limitations: |
  Controllers that are not configured under `jmx` are not counted. Where an endpoint does not respond and no other
  controller is active, the result is unknown, because that endpoint may be the active controller. A change of the
  controller between two samples counts as neither none nor two.
*/
with reported as (
  select
    cluster,
    endpoint,
    min(value) as least_active,
    max(value) as most_active
  from metrics.broker_sample
  where hour = :hour and metric = 'active_controllers'
  group by cluster, endpoint
),

counted as (
  select
    b.cluster,
    count(*) as endpoints,
    count(*) filter (where b.samples is null) as unresponsive,
    count(t.most_active) as controllers,
    count(t.endpoint) filter (where t.most_active is null) as unreporting,
    coalesce(sum(t.least_active), 0) as active_throughout,
    coalesce(sum(t.most_active), 0) as active_at_any_time,
    string_agg(coalesce(b.broker_id::text, b.endpoint), ', ' order by b.broker_id, b.endpoint)
      filter (where t.most_active > 0) as active_brokers
  from metrics.broker_hourly as b
  left join reported as t on b.cluster = t.cluster and b.endpoint = t.endpoint
  where b.hour = :hour
  group by b.cluster
)

select
  case
    when active_throughout > :expected then 'multiple_active'
    when unreporting > 0 then 'not_reported'
    when active_at_any_time >= :expected then 'one_active'
    when unresponsive > 0 then 'no_response'
    when controllers = 0 then 'not_configured'
    else 'none_active'
  end as reason,
  cluster,
  active_throughout as active_controllers,
  active_brokers,
  controllers,
  unreporting as unreporting_controllers,
  endpoints,
  unresponsive as unresponsive_endpoints
from counted

/*
title: Broker memory pressure
resource_kind: broker
owner_role: platform
maturity: experimental
is_mutation_tested: false
reads: [metrics.msk_broker_hourly, metrics.broker_hourly, inventory.msk_broker_hourly, inventory.msk_cluster_hourly]
params:
  heap_percent:
    default: 60
    unit: "%"
    why: "of the heap after a collection: the threshold that Amazon MSK recommends for an alarm; the rest absorbs bursts"
  critical_percent: {default: 85, unit: "%", why: "collections run back to back, and the next burst ends in OutOfMemoryError"}
  swap_bytes: {default: 67108864, unit: bytes, why: "64 MiB; the kernel moves idle pages of this size without any pressure"}
  known_minutes: {default: 30, unit: minutes, why: "fewer of the hour's minutes do not represent it"}
key_metrics: [heap_after_gc_mean_percent, heap_after_gc_max_percent, swap_used_bytes, swap_grown_bytes, page_cache_bytes]
verdicts:
  heap_exhausted:
    status: firing
    severity: critical
    message: &heap >-
      Heap of {{ name }} is {{ heap_after_gc_mean_percent }} full after garbage collection, mean of the hour (limit
      {{ limit_percent }}).
    details: &details
      - "{% if heap_before_percent %}One day earlier it was {{ heap_before_percent }}.{% endif %}"
      - "{% if partitions %}The broker holds {{ partitions.value | int }} partitions and {{ connections.value | int }} connections.{% endif %}"
      - "{% if broker_size %}The broker size is {{ broker_size }}.{% endif %}"
    impact: &impact >-
      Garbage collection pauses the broker: requests time out, followers leave the in-sync replicas, and consumers are
      removed from their groups.
    actions: &actions
      - "Move partition leaders off the broker, and close connections that are not used."
      - >-
        Lower transactional.id.expiration.ms (default 7 days) if many transactional producers come and go: the broker keeps
        the state of each.
      - "{% if larger_broker_size %}Change the broker size from {{ broker_size }} to {{ larger_broker_size }}.{% endif %}"
      - "Reduce the number of partitions per broker, or add brokers and move partitions to them."
    commands: &commands
      - "kafka-transactions.sh --bootstrap-server {{ bootstrap_servers }} list"
      - >-
        {% if larger_broker_size %}aws kafka update-broker-type --region {{ region }} --cluster-arn {{ cluster_arn }}
        --current-version {{ current_version }} --target-instance-type {{ larger_broker_size }}{% endif %}
      - >-
        {% if cluster_arn %}aws kafka update-broker-count --region {{ region }} --cluster-arn {{ cluster_arn }}
        --current-version {{ current_version }} --target-number-of-broker-nodes {{ more_brokers }}{% endif %}
  heap_high:
    status: firing
    severity: warning
    message: *heap
    details: *details
    impact: *impact
    actions: *actions
    commands: *commands
  swapping:
    status: firing
    severity: warning
    message: >-
      Swap in use on {{ name }} grew by {{ swap_grown_bytes }} to {{ swap_used_bytes }} (limit {{ swap_limit_bytes }}):
      memory is exhausted.
    details: *details
    impact: "Memory pages of the broker's JVM are swapped in from disk: reads, writes, and replication pause for seconds."
    actions: *actions
    commands: *commands
  within_limits:
    status: ok
    message: >-
      Memory of {{ name }} is within limits: the heap is {{ heap_after_gc_mean_percent }} full after garbage collection,
      {{ swap_used_bytes or 'no' }} swap is in use.
  express:
    status: unknown
    is_not_applicable: true
    message: "Not applicable: Express brokers do not expose heap and swap; MSK manages their memory."
  no_response:
    status: unknown
    message: "Not evaluated: CloudWatch did not return all memory metrics of {{ name }}."
open_after_hours: 1
clear_after_hours: 2
description: |
  Evaluates brokers of Amazon MSK by CloudWatch (HeapMemoryAfterGC, SwapUsed), which are exposed at every monitoring level
  and free of charge.

  Critical: the heap after garbage collection is more than critical_percent full, mean of the hour. Warning: more than
  heap_percent. Or swap in use exceeds swap_bytes and grew since the last hour: swap that stays is idle memory.
runbook: |
  ## Meaning
  The broker's heap is nearly full even after garbage collection, or its host swaps.

  ## Impact
  Garbage collection or swapping pauses the broker. Followers leave the in-sync replicas, and requests time out.

  ## Diagnosis
  1. Compare brokers: one alone has more partitions, connections, or transactional producers.
  2. Look for a rise after a deployment: a client that opens a connection or a transactional id per request.

  ## Mitigation
  1. Move leaders off the broker; stop the clients that keep opening connections.
  2. Lower transactional.id.expiration.ms.
  3. Change to a larger broker size, or add brokers and move partitions to them.
limitations: |
  Only brokers of Amazon MSK: of others no metric says what a collection leaves of the heap. An hour's mean hides a short
  burst. What fills the heap is not exposed.
*/
with broker as (
  select
    b.*,
    before.swap_used_last_bytes as swap_before_bytes,
    day.heap_after_gc_mean_percent as heap_before_percent
  from metrics.msk_broker_hourly as b
  left join metrics.msk_broker_hourly as before
    on b.hour - interval '1 hour' = before.hour and b.cluster = before.cluster and b.broker_id = before.broker_id
  left join metrics.msk_broker_hourly as day
    on b.hour - interval '24 hours' = day.hour and b.cluster = day.cluster and b.broker_id = day.broker_id
  where b.hour = :hour
)

select
  case
    when b.kind = 'express' then 'express'
    when coalesce(b.minutes_present, 0) < :known_minutes or b.heap_after_gc_mean_percent is null then 'no_response'
    when b.heap_after_gc_mean_percent > :critical_percent then 'heap_exhausted'
    when b.heap_after_gc_mean_percent > :heap_percent then 'heap_high'
    when b.swap_used_last_bytes > :swap_bytes and b.swap_used_last_bytes > b.swap_before_bytes then 'swapping'
    when b.swap_used_last_bytes is null or b.swap_used_last_bytes > :swap_bytes and b.swap_before_bytes is null
      then 'no_response'
    else 'within_limits'
  end as reason,
  b.cluster,
  b.broker_id::text as broker_id,
  b.heap_after_gc_mean_percent,
  b.heap_after_gc_max_percent,
  b.heap_before_percent,
  case when b.heap_after_gc_mean_percent > :critical_percent then :critical_percent else :heap_percent end
    as limit_percent,
  b.swap_used_last_bytes as swap_used_bytes,
  b.swap_used_last_bytes - b.swap_before_bytes as swap_grown_bytes,
  :swap_bytes as swap_limit_bytes,
  b.memory_cached_mean_bytes as page_cache_bytes,
  h.partitions,
  h.client_connections as connections,
  k.region,
  k.cluster_arn,
  k.current_version,
  k.broker_size,
  k.larger_broker_size,
  k.broker_count + greatest(k.broker_count / 3, 1) as more_brokers
from broker as b
left join inventory.msk_brokers(:hour) as k on b.cluster = k.msk_cluster and b.broker_id = k.msk_broker_id
left join (
  select
    cluster,
    broker_id,
    max(partitions) as partitions,
    max(client_connections) as client_connections
  from metrics.broker_hourly
  where hour = :hour
  group by cluster, broker_id
) as h on b.cluster = h.cluster and b.broker_id = h.broker_id

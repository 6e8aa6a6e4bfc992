/*
title: Broker load imbalanced
resource_kind: cluster
owner_role: platform
maturity: stable
reads:
  - metrics.broker_hourly
  - metrics.broker_topic_sample
  - metrics.log_dir_hourly
  - inventory.instance_hourly
  - metrics.instance_network_hourly
  - inventory.topic_hourly
params:
  uneven_ratio: {default: 0.25, unit: ratio, why: "Cruise Control moves data at 9 %; operators do so less often"}
  change_sigmas: {default: 3, unit: sigmas, why: "of the last 14 days, by median and MAD"}
  change_ratio: {default: 0.1, unit: ratio, why: "of the mean: steady load has almost no deviation, so any difference would be a change"}
  limit_ratio: {default: 0.8, unit: ratio, why: "of CPU, network, or disk: the failure of a peer adds load"}
  floor_bytes_per_second: {default: 1048576, unit: bytes/s, why: "of the whole cluster: less traffic is no burden for any broker"}
  hot_ratio: {default: 0.5, unit: ratio, why: "of the bytes into the broker: without this topic its load would be less than half"}
  least_history: {default: 168, unit: h, why: "a week contains every hour that is regularly imbalanced"}
key_metrics: [spread_ratio, baseline_spread_ratio, fullest_broker, fullest_share_ratio, even_share_ratio]
verdicts:
  near_limit:
    status: firing
    severity: warning
    message: "Broker {{ fullest_broker }} uses {{ limit_used_ratio }} of its {{ limit_of }} (limit {{ limit_ratio }}): the load of cluster {{ cluster }} is imbalanced."
    details: &details
      - "Broker {{ fullest_broker }} has {{ fullest_share_ratio }} of the {{ load_kind }}; an even share is {{ even_share_ratio }}."
      - "{% if hot_topic_share_ratio %}Topic {{ hot_topic }} causes {{ hot_topic_share_ratio }} of the bytes into this broker.{% endif %}"
    impact: "The most loaded broker slows its clients first and has no reserve when a peer fails."
    actions: &actions
      - "{% if idle_brokers %}Move partitions to the {{ idle_brokers | counted('broker') }} without leaders.{% endif %}"
      - "{% if has_narrow_topic and not idle_brokers %}Add partitions to topic {{ hot_topic }}: {{ hot_topic_partitions | counted('partition') }} cannot spread over {{ brokers | counted('broker') }}.{% endif %}"
      - "{% if not idle_brokers and leaders_spread_ratio >= uneven_ratio %}Elect the preferred leaders.{% endif %}"
      - "Move partitions away from broker {{ fullest_broker }}, one at a time and with a throttle."
    commands: &commands
      - "streamwarden plan rebalance {{ cluster }}"
      - "{% if leaders_spread_ratio >= uneven_ratio and not idle_brokers %}kafka-leader-election.sh --bootstrap-server {{ bootstrap_servers }} --election-type preferred --all-topic-partitions{% endif %}"
  changed:
    status: firing
    severity: warning
    message: "In cluster {{ cluster }}, the imbalance of {{ load_kind }} rose to {{ spread_ratio }} of the mean (baseline {{ baseline_spread_ratio }})."
    details: *details
    impact: "The most loaded broker slows its clients first and has no reserve when a peer fails."
    actions: *actions
    commands: *commands
  uneven:
    status: firing
    severity: info
    message: "In cluster {{ cluster }}, the imbalance of {{ load_kind }} is {{ spread_ratio }} of the mean; no broker is near a limit."
    details: *details
    impact: "The most loaded broker reaches its limit while others have capacity to spare."
    actions: *actions
    commands: *commands
  balanced: {status: ok, message: "Load imbalance of cluster {{ cluster }} is below {{ uneven_ratio }} of the mean."}
  too_few_brokers: {status: ok, message: "Cluster {{ cluster }} has {{ brokers | counted('broker') }}: too few to balance."}
  low_traffic: {status: ok, message: "Cluster {{ cluster }} receives {{ bytes_in_per_second }}: too little to load a broker."}
  starting: {status: unknown, message: "Not evaluated: a broker of cluster {{ cluster }} started in this hour and is still regaining its leaders."}
  no_response: {status: unknown, message: "Not evaluated: {{ unresponsive_brokers }} of {{ brokers | counted('broker') }} did not respond over JMX."}
  not_reported: {status: unknown, message: "Not evaluated: some brokers of cluster {{ cluster }} did not report their {{ unreported_load }}."}
caused_by:
  untracked_reads_unbalance_brokers: [near_limit, changed]
open_after_hours: 2
clear_after_hours: 3
description: |
  Standard deviation divided by mean over the brokers, of bytes in, bytes out, leaders, and log bytes, each divided by the
  broker's virtual CPUs where all are known: beyond uneven_ratio. A warning if it changed by change_sigmas and by
  change_ratio against 14 days, or if CPU, network, or disk of the most loaded broker exceeds limit_ratio. For bytes in
  and out the more loaded of CPU and network counts. The limit of the network is the baseline of the instance type.
runbook: |
  ## Meaning
  Some brokers of the cluster carry clearly more load than others.
  ## Impact
  The most loaded broker limits the cluster and has no reserve when a peer fails.
  ## Diagnosis
  1. Compare leaders: after restarts they may not have returned to the preferred brokers.
  2. A topic with fewer partitions than brokers cannot be spread evenly.
  ## Mitigation
  1. Elect the preferred leaders: `kafka-leader-election.sh --election-type preferred --all-topic-partitions`.
  2. Move partitions with a throttle: `streamwarden plan rebalance CLUSTER` prints them, best gain per byte first.
limitations: |
  Imbalance of minutes is not detected. The network limit is unknown for instances that EC2 does not return. Instances differ
  in more than virtual CPUs.
*/
with broker_instance as materialized (
  select
    b.cluster,
    b.endpoint,
    i.vcpus
  from metrics.broker_hourly as b
  inner join inventory.instance_hourly as i using (hour, instance_id)
  where b.hour = :hour
),

broker as materialized (
  select
    b.*,
    coalesce(b.broker_id::text, b.endpoint) as name,
    case
      when bool_and(m.vcpus is not null) over (partition by b.hour, b.cluster) then m.vcpus::double precision
      else 1
    end as weight
  from metrics.broker_hourly as b
  left join broker_instance as m using (cluster, endpoint)
  where b.hour > :hour - interval '14 days' and b.hour <= :hour
  -- Controllers hold no data.
  and (b.active_controllers is null or b.partitions is not null)
),

share as (
  select
    b.hour,
    b.cluster,
    b.name,
    b.endpoint,
    part.load_kind,
    part.value,
    part.value / b.weight as weighed,
    part.value / nullif(sum(part.value) over everyone, 0) as share,
    b.weight / sum(b.weight) over everyone as even_share
  from broker as b
  cross join lateral (
    values
    ('bytes in', b.bytes_in_per_second), ('bytes out', b.bytes_out_per_second), ('leaders', b.leaders),
    ('log bytes', b.log_bytes)
  ) as part (load_kind, value)
  window everyone as (partition by b.hour, b.cluster, part.load_kind)
),

spread as materialized (
  select
    hour,
    cluster,
    load_kind,
    case when count(value) = count(*) then stddev_pop(weighed) / nullif(avg(weighed), 0) end as spread,
    count(value) < count(*) as is_unreported
  from share
  group by hour, cluster, load_kind
),

past as (
  select
    cluster,
    load_kind,
    array_agg(hour) as hours,
    array_agg(spread) as spreads
  from spread
  group by cluster, load_kind
),

fullest as (
  select distinct on (cluster, load_kind) *
  from share
  where hour = :hour
  order by cluster asc, load_kind asc, weighed desc nulls last, name asc
),

disk as (
  select
    cluster,
    broker_id::text as name,
    max(1 - usable_bytes::double precision / total_bytes) as used_ratio
  from metrics.log_dir_hourly
  where hour = :hour
  group by cluster, broker_id
),

evaluated as (
  select
    s.cluster,
    s.load_kind,
    s.spread,
    u.median as baseline_spread,
    f.name,
    f.endpoint,
    f.share,
    f.even_share,
    used.limit_of,
    used.ratio as limit_used_ratio,
    used.ratio > :limit_ratio as is_near_limit,
    s.spread >= u.median + greatest(:change_sigmas * 1.4826 * u.mad, :change_ratio) as has_changed
  from spread as s
  inner join past as p using (cluster, load_kind)
  inner join fullest as f using (cluster, load_kind)
  inner join broker as b on s.hour = b.hour and f.cluster = b.cluster and f.endpoint = b.endpoint
  left join disk as d on f.cluster = d.cluster and f.name = d.name
  cross join lateral public.topic_baseline(s.hour, p.hours, p.spreads, cast(:least_history as integer)) as u
  left join metrics.instance_network_hourly as n
    on s.hour = n.hour and b.instance_id = n.instance_id and s.load_kind = 'bytes ' || n.direction
  cross join lateral (
    select
      limits.of as limit_of,
      limits.ratio
    from (
      values
      ('disk', case when s.load_kind = 'log bytes' then d.used_ratio end),
      ('CPU', case when s.load_kind <> 'log bytes' then b.cpu_ratio end),
      ('network', n.bytes_per_second_mean / nullif(n.baseline_bytes_per_second, 0))
    ) as limits (of, ratio)
    order by limits.ratio desc nulls last
    limit 1
  ) as used
  where s.hour = :hour and s.spread >= :uneven_ratio
),

worst as (
  select distinct on (cluster) *
  from evaluated
  order by cluster asc, is_near_limit desc nulls last, has_changed desc nulls last, spread desc, load_kind asc
),

hot as (
  select distinct on (w.cluster)
    w.cluster,
    t.topic,
    i.partitions,
    t.bytes_in / nullif(sum(t.bytes_in) over (partition by w.cluster), 0) as share
  from worst as w
  inner join metrics.broker_topic_sample as t on w.cluster = t.cluster and w.endpoint = t.endpoint
  left join inventory.topic_hourly as i on t.hour = i.hour and t.cluster = i.cluster and t.topic = i.topic
  where t.hour = :hour
  order by w.cluster asc, t.bytes_in desc nulls last, t.topic asc
),

cluster as (
  select
    cluster,
    count(*) as brokers,
    count(*) filter (where samples is null) as unresponsive_brokers,
    count(*) filter (where leaders = 0) as idle_brokers,
    sum(bytes_in_per_second) as bytes_in_per_second,
    bool_or(process_started_at > hour) as is_starting
  from broker
  where hour = :hour
  group by cluster
),

cluster_spread as (
  select
    cluster,
    string_agg(load_kind, ', ' order by load_kind) filter (where is_unreported) as resources,
    sum(spread) filter (where load_kind = 'leaders') as leaders_spread_ratio
  from spread
  where hour = :hour
  group by cluster
)

select
  case
    when c.unresponsive_brokers > 0 then 'no_response'
    when c.brokers < 3 then 'too_few_brokers'
    when c.is_starting then 'starting'
    when c.bytes_in_per_second < :floor_bytes_per_second then 'low_traffic'
    when w.is_near_limit then 'near_limit'
    when w.has_changed then 'changed'
    when w.spread is not null then 'uneven'
    when u.resources is not null then 'not_reported'
    else 'balanced'
  end as reason,
  cluster,
  w.load_kind,
  w.spread as spread_ratio,
  w.baseline_spread as baseline_spread_ratio,
  w.name as fullest_broker,
  w.share as fullest_share_ratio,
  w.even_share as even_share_ratio,
  w.limit_of,
  w.limit_used_ratio,
  u.leaders_spread_ratio,
  c.idle_brokers,
  h.topic as hot_topic,
  h.partitions as hot_topic_partitions,
  h.share as hot_topic_share_ratio,
  w.load_kind <> 'log bytes' and h.partitions < c.brokers and h.share > :hot_ratio as has_narrow_topic,
  c.brokers,
  c.unresponsive_brokers,
  c.bytes_in_per_second,
  u.resources as unreported_load,
  case when w.name is not null then jsonb_build_array(public.resource_key('broker', cluster, w.name)) end as affected
from cluster as c
inner join cluster_spread as u using (cluster)
left join worst as w using (cluster)
left join hot as h using (cluster)

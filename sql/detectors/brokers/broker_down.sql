/*
title: Broker down
resource_kind: broker
owner_role: platform
maturity: stable
reads:
  - inventory.broker_hourly
  - inventory.instance_hourly
  - inventory.volume_hourly
  - metrics.broker_hourly
  - metrics.partition_hourly
  - metrics.consumer_partition_hourly
  - metrics.log_dir_hourly
  - metrics.volume_hourly
  - metrics.volume_sample
  - metrics.instance_network_sample
  - inventory.pod_hourly
params:
  look_back_hours: {default: 24, unit: h, why: "metrics of a broker from so long before its failure still help to explain it"}
  roll_minutes: {default: 60, unit: min, why: "a rolling restart reaches the next broker within an hour"}
  full_ratio:
    default: 0.95
    unit: ratio
    why: "one large segment from full: a full log directory goes offline, and the broker stops with its last one"
  files_ratio: {default: 0.9, unit: ratio, why: "without a free file descriptor it accepts no connection and rolls no segment"}
  heap_ratio: {default: 0.95, unit: ratio, why: "above it garbage collection runs constantly, or OutOfMemoryError follows"}
  empty_percent:
    default: 1
    unit: "%"
    why: "a volume without burst credits is so slow that the broker loses its session with the controller"
  outage_minutes: {default: 15, unit: min, why: "a restart with log recovery takes some minutes; partitions miss a replica for longer"}
  quiet_ratio: {default: 0.1, unit: ratio, why: "of its writes or network traffic before; logging and monitoring of the host continue"}
key_metrics: [last_listed_at, replicas, missing_partitions, leaderless_partitions, groups]
verdicts:
  instance_gone:
    status: firing
    severity: critical
    message: "Broker {{ broker_id }} is down: its instance {{ instance_id }} is {{ instance_state or 'terminated or missing' }}."
    details: &details
      - "{% if last_listed_at %}The cluster last listed the broker at {{ last_listed_at }}.{% endif %}"
      - "{% if not last_listed_at %}The cluster has not listed the broker within the last {{ look_back_hours }}.{% endif %}"
      - "{% if endpoint %}The JVM of the broker does not respond over JMX.{% endif %}"
      - >-
        {% if exit_reason %}The last run of its container in pod {{ pod }} ended with {{ exit_reason }} (exit code
        {{ exit_code.value }}) at {{ exited_at }}.{% endif %}
      - "{% if missing_partitions %}{{ missing_partitions | counted('partition') }} {{ missing_partitions | plural('is', 'are') }} missing the replica on this broker.{% endif %}"
      - "{% if leaderless_partitions %}{{ leaderless_partitions | counted('partition') }} led by this broker {{ leaderless_partitions | plural('has', 'have') }} no leader.{% endif %}"
      - "{% if disk_used_ratio and disk_used_ratio >= full_ratio %}Log directory {{ log_dir }} was {{ disk_used_ratio }} full when last reported.{% endif %}"
      - "{% if files_used_ratio and files_used_ratio >= files_ratio %}{{ open_file_descriptors }} of {{ max_file_descriptors }} file descriptors were open when last reported.{% endif %}"
      - "{% if is_heap_full %}The heap was using {{ heap_used_bytes }} of {{ heap_max_bytes }} when last reported.{% endif %}"
      - "{% if is_volume_empty %}Volume {{ volume_id }} had a burst balance of {{ burst_balance_percent }} when the broker was last listed.{% endif %}"
    impact: &impact "Partitions of this broker have fewer replicas or no leader; another broker failure can stop writes or lose data."
    actions:
      - "Start the instance{% if host %} of host {{ host }}{% endif %}, or start a new broker with id {{ broker_id }} on another host; the broker then replicates all its data."
      - "If the broker will not return, reassign its replicas to the other brokers."
    commands: &commands
      - "kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --describe --unavailable-partitions"
      - "kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --describe --under-min-isr-partitions"
      - "{% if pod %}kubectl -n {{ namespace }} describe pod {{ pod }}{% endif %}"
      - "{% if pod %}kubectl -n {{ namespace }} logs {{ pod }} -c {{ container }} --previous --tail=50{% endif %}"
      - >-
        {% if pod and node_pool %}kubectl -n {{ namespace }} annotate pod {{ pod }} strimzi.io/manual-rolling-update=true{% endif %}
  disk_full:
    status: firing
    severity: critical
    message: "Broker {{ broker_id }} is down: its log directory {{ log_dir }} was full."
    details: *details
    impact: *impact
    actions:
      - "Enlarge the volume of {{ log_dir }} before you start the broker; do not delete segment files, their records would be lost."
      - &start_on_host "{% if not pod and host %}Start the broker on host {{ host }}.{% endif %}"
      - &start "{% if not pod and not host %}Start the broker.{% endif %}"
      - &find_why >-
        {% if pod %}Find out why pod {{ pod }} is not ready: check its events, and the log of its previous
        run.{% endif %}
      - &let_strimzi >-
        {% if pod and node_pool %}Let Strimzi restart the pod by its annotation; change limits and storage in
        KafkaNodePool {{ node_pool }}, not in the pod.{% endif %}
      - "Shorten the retention of its largest topics, or add disk space."
    commands: *commands
  file_descriptors_exhausted:
    status: firing
    severity: critical
    message: "Broker {{ broker_id }} is down: its file descriptors were exhausted."
    details: *details
    impact: *impact
    actions:
      - "Raise LimitNOFILE in the systemd unit, then start the broker."
      - "Find what kept the files open: leaked connections or too many log segments."
    commands: *commands
  down:
    status: firing
    severity: critical
    message: "Broker {{ broker_id }} is down: the cluster does not list it."
    details: *details
    impact: *impact
    actions:
      - "{% if is_volume_empty %}Restore the I/O of {{ volume_id }} before you start the broker: enlarge the volume or change its type to gp3.{% endif %}"
      - *start_on_host
      - *start
      - *find_why
      - *let_strimzi
      - "{% if is_heap_full %}Raise its heap first: the heap was full.{% endif %}"
      - "Check the last lines of server.log and the kernel log (OOM killer) for the cause."
    commands: *commands
  was_down:
    status: firing
    severity: warning
    message: "Broker {{ broker_id }} was down from {{ down_since }} to {{ started_at }} ({{ down_seconds }})."
    details:
      - "{% if last_listed_at %}The cluster listed the broker before, at {{ previously_listed_at }}, and lists it again.{% endif %}"
      - "Its JVM started at {{ started_at }}; before that, instance {{ instance_id }} had almost no disk writes or network traffic for {{ down_seconds }}."
    impact: "Meanwhile, its partitions had fewer replicas or no leader; after the start, the broker catches up on replication."
    actions:
      - "Check the last lines of server.log before {{ down_since }} and the kernel log (OOM killer){% if host %} on host {{ host }}{% endif %} for the cause."
      - "Run a preferred leader election, so that the broker leads its partitions again."
    commands:
      - "kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --describe --under-replicated-partitions"
      - "kafka-leader-election.sh --bootstrap-server {{ bootstrap_servers }} --election-type preferred --all-topic-partitions"
  restarted: {status: ok, message: "Broker {{ broker_id }} started at {{ started_at }}, and the cluster lists it."}
  rolling_restart:
    status: ok
    message: "Broker {{ broker_id }} is restarting: {{ restarted_peers | counted('peer') }} restarted within the last {{ roll_minutes }}."
  responding: {status: ok, message: "Broker {{ broker_id }} responds over JMX but is not listed: the broker is starting or stopping."}
  no_listener:
    status: ok
    message: "Broker {{ broker_id }} runs, but {{ no_listener_partitions | counted('partition') }} of those it led {{ no_listener_partitions | plural('has', 'have') }} a leader without our listener."
  retired: {status: ok, message: "Broker {{ broker_id }} was decommissioned: the cluster does not list it, and it has no replicas."}
  listed: {status: ok, message: "The cluster lists broker {{ broker_id }}."}
  cluster_unreachable: {status: unknown, message: "Not evaluated: no broker of cluster {{ cluster }} returned the list of brokers."}
causes:
  broker_down_loses_replicas: &down [instance_gone, disk_full, file_descriptors_exhausted, down]
  broker_loses_replicas: *down
  broker_down_leaves_partitions_offline: *down
  outage_leaves_replicas_behind: [was_down]
  outage_delays_consumers: [was_down]
caused_by:
  instance_failure_stops_broker: *down
  limits_stop_broker: *down
open_after_hours: 1
clear_after_hours: 1
description: |
  A broker is down if it holds replicas, the cluster does not list it in two requests some seconds apart, and its JVM,
  where configured, does not respond. Where the cluster returns no topics, a broker counts that was listed within
  look_back_hours. A single unlisted broker counts as part of a rolling restart if peers were restarted within
  roll_minutes. The reason is the first of: instance not running, disk full, file descriptors exhausted. These are the
  last values reported before the failure. If all replicas are in sync and a leader does not have our listener, the broker
  runs (see partitions_leaderless). The cluster itself returns the list, so a failure of our own network is not taken for
  a dead broker: if no broker responds, the result is unknown.

  An outage between two runs: the hour before listed the broker, this hour lists it again, and its JVM started in between.
  It was down for the minutes before this start in which its volumes took no writes, or its instance's network was idle
  (below quiet_ratio of the hour before), from outage_minutes on. Such a finding fires for one hour.
runbook: |
  ## Meaning
  The cluster's metadata no longer contains a broker that has replicas.
  ## Impact
  Its partitions are under-replicated. Partitions without another in-sync replica have no leader and cannot be used.
  ## Diagnosis
  1. Check whether the instance runs.
  2. Check disk, file descriptors, heap, and burst balance before the failure (chart and details).
  3. If the process runs but is not listed: server.log shows log recovery or a failing connection to the controller.
  ## Mitigation
  1. Fix what was exhausted first (disk, file descriptors, heap, or I/O); otherwise the broker stops again.
  2. Start the broker, or start a broker with the same id on another host.
  3. If it is not to return: move its replicas with kafka-reassign-partitions.sh.
limitations: |
  A broker that only we cannot reach is still listed and not down. Without a majority of controllers a dead broker stays
  listed; controllers_missing covers that. An outage between two runs is detected only
  with the minutes of CloudWatch, and not for a broker without traffic. Without JMX, a rolling restart at
  the moment of both requests is reported as a failure. An instance counts as gone only if EC2 returned other instances of
  its account and region.
*/
with before as (
  select
    cluster,
    broker_id,
    max(observed_at) filter (where is_listed) as last_listed_at,
    max(hour) filter (where is_listed) as last_listed_hour,
    (array_agg(host order by hour desc) filter (where host is not null))[1] as host
  from inventory.broker_hourly
  where hour > :hour - make_interval(hours => cast(:look_back_hours as integer)) and hour <= :hour
  group by cluster, broker_id
),

cluster_list as (
  select
    cluster,
    sum(replicas) as replicas,
    count(*) filter (where not is_listed) as unlisted,
    max(observed_at) as observed_at
  from inventory.broker_hourly
  where hour = :hour
  group by cluster
),

restarted as (
  select
    r.cluster,
    count(*) as restarted_peers
  from cluster_list as r
  inner join metrics.broker_hourly as b on r.cluster = b.cluster and b.hour = :hour
  where b.process_started_at > r.observed_at - make_interval(mins => cast(:roll_minutes as integer))
  group by r.cluster
),

broker as (
  select
    b.cluster,
    b.broker_id,
    b.last_listed_at,
    b.last_listed_hour,
    b.host,
    n.replicas,
    j.endpoint,
    j.instance_id,
    j.open_file_descriptors,
    j.max_file_descriptors,
    j.heap_used_bytes,
    j.heap_max_bytes,
    s.restarted_peers,
    r.cluster is not null as is_known,
    coalesce(n.is_listed, false) as is_listed,
    n.cluster is null and r.replicas > 0 as is_retired,
    coalesce(j.is_responding, false) as is_responding,
    j.open_file_descriptors / j.max_file_descriptors as files_used_ratio,
    j.heap_used_bytes / nullif(greatest(j.heap_max_bytes, 0), 0) as heap_used_ratio,
    r.unlisted = 1 and s.restarted_peers is not null as is_rolling
  from before as b
  left join inventory.broker_hourly as n on n.hour = :hour and b.cluster = n.cluster and b.broker_id = n.broker_id
  left join cluster_list as r on b.cluster = r.cluster
  left join public.broker_jvms(:hour, cast(:look_back_hours as integer)) as j
    on b.cluster = j.cluster and b.broker_id = j.broker_id
  left join restarted as s on b.cluster = s.cluster
),

gone as materialized (
  select *
  from broker
  where is_known and not (is_listed or is_retired or is_responding)
),

-- The fullest log directory when last reported.
disk as (
  select distinct on (g.cluster, g.broker_id)
    g.cluster,
    g.broker_id,
    d.log_dir,
    d.usable_bytes,
    1 - d.usable_bytes::double precision / nullif(d.total_bytes, 0) as disk_used_ratio
  from gone as g
  inner join metrics.log_dir_hourly as d on g.cluster = d.cluster and g.broker_id = d.broker_id
  where d.hour > :hour - make_interval(hours => cast(:look_back_hours as integer)) and d.hour <= :hour
  order by g.cluster asc, g.broker_id asc, d.hour desc, disk_used_ratio desc nulls last, d.log_dir asc
),

-- The volume with the lowest burst balance.
credits as (
  select distinct on (g.cluster, g.broker_id)
    g.cluster,
    g.broker_id,
    v.volume_id,
    v.burst_balance_last_percent as burst_balance_percent
  from gone as g
  inner join inventory.volume_hourly as a on g.instance_id = a.instance_id and g.last_listed_hour = a.hour
  inner join metrics.volume_hourly as v
    on a.hour = v.hour and a.account = v.account and a.region = v.region and a.volume_id = v.volume_id
  left join inventory.pod_volumes(:hour) as k on a.volume_id = k.volume_id
  where v.burst_balance_last_percent is not null
  -- A node of Kubernetes has volumes of other pods, too.
  and (k.volume_id is null or (g.cluster = k.claim_cluster and g.broker_id = k.claim_broker_id))
  order by g.cluster asc, g.broker_id asc, v.burst_balance_last_percent asc, v.volume_id asc
),

missing as (
  select
    p.cluster,
    m.broker_id,
    count(*) as missing_partitions
  from metrics.partition_hourly as p
  cross join lateral jsonb_array_elements_text(p.missing_brokers) as m (broker_id)
  where p.hour = :hour and p.missing_brokers is not null
  group by p.cluster, m.broker_id
),

-- The partitions that the broker led when it was last listed.
led as materialized (
  select
    g.cluster,
    g.broker_id,
    p.topic,
    p.partition,
    n.leader_error,
    n.partition is not null and n.leader is null as is_leaderless
  from gone as g
  inner join metrics.partition_hourly as p
    on g.last_listed_hour = p.hour and g.cluster = p.cluster and g.broker_id = p.leader
  left join metrics.partition_hourly as n
    on n.hour = :hour and p.cluster = n.cluster and p.topic = n.topic and p.partition = n.partition
  -- A list of hours lets PostgreSQL skip the other partitions of the table.
  where p.hour = any(array(select last_listed_hour from gone))
),

stopped as (
  select
    cluster,
    broker_id,
    count(*) as led_partitions,
    count(*) filter (where is_leaderless) as leaderless_partitions,
    count(*) filter (where leader_error = 'LISTENER_NOT_FOUND') as no_listener_partitions,
    (array_agg(jsonb_build_object('topic', topic, 'partition', partition) order by topic, partition)
      filter (where is_leaderless))[:100] as affected
  from led
  group by cluster, broker_id
),

reading as (
  select
    l.cluster,
    l.broker_id,
    count(distinct c.group_id) as groups
  from led as l
  inner join metrics.consumer_partition_hourly as c
    on c.hour = :hour and l.cluster = c.cluster and l.topic = c.topic and l.partition = c.partition
  group by l.cluster, l.broker_id
)

select
  case
    when not b.is_known then 'cluster_unreachable'
    when b.is_listed and o.known_until - o.down_since >= make_interval(mins => cast(:outage_minutes as integer)) then 'was_down'
    when b.is_listed and o.started_at is not null then 'restarted'
    when b.is_listed then 'listed'
    when b.is_retired then 'retired'
    when b.is_responding then 'responding'
    when s.no_listener_partitions > 0 and k.missing_partitions is null then 'no_listener'
    when m.is_gone then 'instance_gone'
    when b.is_rolling then 'rolling_restart'
    when d.disk_used_ratio >= :full_ratio then 'disk_full'
    when b.files_used_ratio >= :files_ratio then 'file_descriptors_exhausted'
    else 'down'
  end as reason,
  b.cluster,
  b.broker_id,
  b.host,
  b.endpoint,
  b.last_listed_at,
  o.last_listed_at as previously_listed_at,
  o.down_since,
  o.started_at,
  extract(epoch from o.started_at - o.down_since) as down_seconds,
  b.replicas,
  coalesce(k.missing_partitions, case when b.replicas is not null then 0 end) as missing_partitions,
  s.leaderless_partitions,
  s.no_listener_partitions,
  s.led_partitions,
  r.groups,
  b.instance_id,
  m.state as instance_state,
  m.is_gone as is_instance_gone,
  d.log_dir,
  d.disk_used_ratio,
  d.usable_bytes,
  b.open_file_descriptors,
  b.max_file_descriptors,
  b.files_used_ratio,
  b.heap_used_bytes,
  b.heap_max_bytes,
  b.heap_used_ratio,
  b.heap_used_ratio >= :heap_ratio as is_heap_full,
  c.volume_id,
  c.burst_balance_percent,
  c.burst_balance_percent <= :empty_percent as is_volume_empty,
  b.restarted_peers,
  s.affected,
  pd.pod_namespace as namespace,
  pd.pod,
  pd.pod_container as container,
  pd.pod_node_pool as node_pool,
  pd.pod_exit_reason as exit_reason,
  pd.pod_exit_code as exit_code,
  pd.pod_exited_at as exited_at
from broker as b
left join gone as g on b.cluster = g.cluster and b.broker_id = g.broker_id
left join inventory.pods(:hour) as pd on b.cluster = pd.cluster and b.broker_id = pd.pod_broker_id
left join public.instances_gone(:hour, cast(:look_back_hours as integer)) as m on g.instance_id = m.instance_id
left join disk as d on b.cluster = d.cluster and b.broker_id = d.broker_id
left join credits as c on b.cluster = c.cluster and b.broker_id = c.broker_id
left join missing as k on b.cluster = k.cluster and b.broker_id::text = k.broker_id
left join stopped as s on b.cluster = s.cluster and b.broker_id = s.broker_id
left join reading as r on b.cluster = r.cluster and b.broker_id = r.broker_id
left join public.broker_outages(:hour, :quiet_ratio) as o on b.cluster = o.cluster and b.broker_id = o.broker_id

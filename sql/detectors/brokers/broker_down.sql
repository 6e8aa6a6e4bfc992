/*
title: Broker is down
resource_kind: broker
owner_role: platform
maturity: stable
reads: [inventory.broker_hourly, inventory.instance_hourly, inventory.volume_hourly, metrics.broker_hourly, metrics.partition_hourly, metrics.consumer_partition_hourly, metrics.log_dir_hourly, metrics.volume_hourly]
params:
  look_back_hours: {default: 24, unit: h, why: "so long what was known of a broker before it went says something of why"}
  roll_minutes: {default: 60, unit: min, why: "a rolling restart comes to the next broker within an hour"}
  full_ratio: {default: 0.95, unit: ratio, why: "one large segment from the end: a full log directory goes offline, and the broker with its last one"}
  files_ratio: {default: 0.9, unit: ratio, why: "without a free file descriptor it accepts no connection and rolls no segment"}
  heap_ratio: {default: 0.95, unit: ratio, why: "with so little of its heap left it collects garbage all the time, or ends with OutOfMemoryError"}
  empty_percent: {default: 1, unit: "%", why: "a volume without credits writes so slowly that a broker loses its session with the controller"}
key_metrics: [last_listed_at, replicas, missing_partitions, leaderless_partitions, groups]
verdicts:
  machine_gone:
    status: firing
    severity: critical
    message: &reason "The cluster doesn't list it{% if last_listed_at %}; the last time it did was {{ last_listed_at }}{% else %}, nor was it seen to within {{ look_back_hours }}{% endif %}{% if endpoint %}, and its JVM doesn't answer{% endif %}.{% if is_machine_gone %} Its machine {{ instance_id }} is {{ instance_state or 'no longer there' }}.{% endif %}{% if disk_used_ratio and disk_used_ratio >= full_ratio %} When it answered last {{ log_dir }} was {{ disk_used_ratio }} full.{% endif %}{% if files_used_ratio and files_used_ratio >= files_ratio %} When it answered last {{ open_file_descriptors }} of {{ max_file_descriptors }} files were open.{% endif %}{% if is_heap_full %} When it answered last {{ heap_used_bytes }} of a heap of {{ heap_max_bytes }} were in use.{% endif %}{% if is_volume_empty %} When it was listed last volume {{ volume_id }} had {{ burst_balance_percent }} of its credits left.{% endif %}{% if missing_partitions %} {{ missing_partitions | counted('partition') }} {{ 'lacks' if missing_partitions == 1 else 'lack' }} its replica.{% endif %}{% if leaderless_partitions %} {{ leaderless_partitions | counted('partition') }} that it led {{ 'has' if leaderless_partitions == 1 else 'have' }} no leader.{% endif %}"
    actions:
      - "Start the machine, or a new broker with the id {{ broker_id }} on another: it fetches all of its replicas anew. Where it isn't to come back, move its replicas to the others."
    commands: &describe
      - "kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --describe --unavailable-partitions"
      - "kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --describe --under-min-isr-partitions"
  disk_full:
    status: firing
    severity: critical
    message: *reason
    actions:
      - "Give {{ log_dir }} room before you start it: a larger volume. Segments removed by hand are lost."
    commands: *describe
  files_used_up:
    status: firing
    severity: critical
    message: *reason
    actions:
      - "Raise its limit of open files (LimitNOFILE in the unit of systemd), then start it."
    commands: *describe
  down:
    status: firing
    severity: critical
    message: *reason
    actions:
      - "Start it{% if is_heap_full %} with a larger heap{% endif %}{% if is_volume_empty %}; give {{ volume_id }} more than its credits first: a larger volume, or gp3{% endif %}. The last lines of its server.log, and the system's log of that minute (out of memory), say why it ended."
    commands: *describe
  rolling: {status: ok, message: "The cluster doesn't list it, while it is restarted: so {{ 'was' if restarted_peers == 1 else 'were' }} {{ restarted_peers | counted('peer') }} in the hour before, one after the other."}
  responding: {status: ok, message: "The cluster doesn't list it, but its JVM answers: it starts, or it stops."}
  no_listener: {status: ok, message: "The cluster doesn't list it to those who ask as we do, but all its replicas are in sync, and of what it led {{ no_listener_partitions | counted('partition') }} {{ 'has' if no_listener_partitions == 1 else 'have' }} a leader without our listener: it runs."}
  retired: {status: ok, message: "The cluster doesn't list it any more, and it has no replicas: it was taken out."}
  listed: {status: ok, message: "The cluster lists it."}
  unread: {status: unknown, message: "The cluster could not be asked which brokers it has: whether they are down, or our way to them, isn't known."}
causes:
  broker_down_loses_replicas: &ends [machine_gone, disk_full, files_used_up, down]
  broker_loses_replicas: *ends
  broker_down_leaves_partitions_offline: *ends
caused_by:
  instance_failure_stops_broker: [machine_gone, disk_full, files_used_up, down]
  limits_stop_broker: [machine_gone, disk_full, files_used_up, down]
open_after_hours: 1
clear_after_hours: 1
description: |
  A broker that has replicas and that the cluster doesn't list: at two looks, some seconds apart, and whose JVM, where it
  is configured, doesn't answer. Where the cluster shows no topics, one that was listed within look_back_hours. A single broker
  that isn't listed while peers were restarted within roll_minutes is taken for the next of them. Which machine, disk or
  limit may have ended it is what was known of it last: its machine, disk, open files, heap and credits, in this order.
  Where all its replicas are in sync, and a leader lacks our listener, it runs: partitions_leaderless tells that. Who is listed is told by the cluster itself, so that our own
  network can't take a broker for dead: where no broker answers, nothing is judged.
runbook: |
  1. Does its machine run? Start it, or start the broker with the same id on another.
  2. What was it short of before: disk, open files, memory? Mend that first, or it ends again.
  3. It starts and isn't listed: server.log says whether it recovers logs, or can't reach the controller.
  4. Not to come back: kafka-reassign-partitions.sh for what it held. Until then one failure more may cost data.
limitations: |
  A broker cut off from us, but not from its peers, is listed: it isn't down. Where most controllers are gone nobody takes
  a dead broker off the list: controllers_missing tells that. What came and went between two runs isn't seen. Without JMX
  a rolling restart at the moment of both looks is taken for a dead broker. A machine counts as gone only where EC2 told
  others of its account and region.
*/
with before as (
  select
    cluster,
    broker_id,
    max(observed_at) filter (where is_listed) as last_listed_at,
    max(hour) filter (where is_listed) as last_listed_hour
  from inventory.broker_hourly
  where hour > :hour - make_interval(hours => cast(:look_back_hours as integer))
  and hour <= :hour
  group by cluster, broker_id
),

read as (
  select
    cluster,
    sum(replicas) as replicas,
    count(*) filter (where not is_listed) as unlisted,
    max(observed_at) as observed_at
  from inventory.broker_hourly
  where hour = :hour
  group by cluster
),

-- What its JVM said last, and whether it answers now.
jvm as (
  select
    cluster,
    broker_id,
    (array_agg(endpoint order by hour desc))[1] as endpoint,
    bool_or(samples is not null) filter (where hour = :hour) as is_answering,
    (array_agg(instance_id order by hour desc) filter (where instance_id is not null))[1] as instance_id,
    (array_agg(open_file_descriptors order by hour desc) filter (where samples is not null))[1] as open_file_descriptors,
    (array_agg(nullif(greatest(max_file_descriptors, 0), 0) order by hour desc) filter (where samples is not null))[1]
      as max_file_descriptors,
    (array_agg(heap_used_bytes order by hour desc) filter (where samples is not null))[1] as heap_used_bytes,
    (array_agg(heap_max_bytes order by hour desc) filter (where samples is not null))[1] as heap_max_bytes
  from metrics.broker_hourly
  where hour > :hour - make_interval(hours => cast(:look_back_hours as integer))
  and hour <= :hour and broker_id is not null
  group by cluster, broker_id
),

restarted as (
  select
    r.cluster,
    count(*) as restarted_peers
  from read as r
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
    n.host,
    n.replicas,
    j.endpoint,
    j.instance_id,
    j.open_file_descriptors,
    j.max_file_descriptors,
    j.heap_used_bytes,
    j.heap_max_bytes,
    s.restarted_peers,
    r.cluster is not null as is_read,
    coalesce(n.is_listed, false) as is_listed,
    n.cluster is null and r.replicas > 0 as is_retired,
    coalesce(j.is_answering, false) as is_answering,
    j.open_file_descriptors / j.max_file_descriptors as files_used_ratio,
    j.heap_used_bytes / nullif(greatest(j.heap_max_bytes, 0), 0) as heap_used_ratio,
    r.unlisted = 1 and s.restarted_peers is not null as is_rolling
  from before as b
  left join inventory.broker_hourly as n
    on n.hour = :hour and b.cluster = n.cluster and b.broker_id = n.broker_id
  left join read as r on b.cluster = r.cluster
  left join jvm as j on b.cluster = j.cluster and b.broker_id = j.broker_id
  left join restarted as s on b.cluster = s.cluster
),

gone as materialized (
  select *
  from broker
  where is_read and not (is_listed or is_retired or is_answering)
),

-- The fullest of its log directories, as it told them last.
disk as (
  select distinct on (g.cluster, g.broker_id)
    g.cluster,
    g.broker_id,
    d.log_dir,
    d.usable_bytes,
    1 - d.usable_bytes::double precision / nullif(d.total_bytes, 0) as disk_used_ratio
  from gone as g
  inner join metrics.log_dir_hourly as d on g.cluster = d.cluster and g.broker_id = d.broker_id
  where d.hour > :hour - make_interval(hours => cast(:look_back_hours as integer))
  and d.hour <= :hour
  order by g.cluster asc, g.broker_id asc, d.hour desc, disk_used_ratio desc nulls last, d.log_dir asc
),

machine as (
  select
    g.cluster,
    g.broker_id,
    n.state as instance_state,
    coalesce(n.state, '') <> 'running' as is_machine_gone
  from gone as g
  inner join (
    select distinct
      instance_id,
      account,
      region
    from inventory.instance_hourly
    where hour > :hour - make_interval(hours => cast(:look_back_hours as integer))
    and hour <= :hour
  ) as known on g.instance_id = known.instance_id
  left join inventory.instance_hourly as n on n.hour = :hour and g.instance_id = n.instance_id
  -- Where it was told: EC2 answers for each account and region by itself.
  where exists (
    select
    from inventory.instance_hourly as i
    where i.hour = :hour and known.account = i.account and known.region = i.region
  )
),

-- The emptiest of its volumes.
credits as (
  select distinct on (g.cluster, g.broker_id)
    g.cluster,
    g.broker_id,
    v.volume_id,
    v.burst_balance_last_percent as burst_balance_percent
  from gone as g
  inner join inventory.volume_hourly as a
    on g.instance_id = a.instance_id and g.last_listed_hour = a.hour
  inner join metrics.volume_hourly as v
    on a.hour = v.hour and a.account = v.account and a.region = v.region and a.volume_id = v.volume_id
  where v.burst_balance_last_percent is not null
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

-- What it led when it was listed last, and who reads that.
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
  -- As hours, so that no others of a day of all partitions are read.
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
    when not b.is_read then 'unread'
    when b.is_listed then 'listed'
    when b.is_retired then 'retired'
    when b.is_answering then 'responding'
    when s.no_listener_partitions > 0 and k.missing_partitions is null then 'no_listener'
    when m.is_machine_gone then 'machine_gone'
    when b.is_rolling then 'rolling'
    when d.disk_used_ratio >= :full_ratio then 'disk_full'
    when b.files_used_ratio >= :files_ratio then 'files_used_up'
    else 'down'
  end as reason,
  b.cluster,
  b.broker_id,
  b.host,
  b.endpoint,
  b.last_listed_at,
  b.replicas,
  coalesce(k.missing_partitions, case when b.replicas is not null then 0 end) as missing_partitions,
  s.leaderless_partitions,
  s.no_listener_partitions,
  s.led_partitions,
  r.groups,
  b.instance_id,
  m.instance_state,
  m.is_machine_gone,
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
  s.affected
from broker as b
left join machine as m on b.cluster = m.cluster and b.broker_id = m.broker_id
left join disk as d on b.cluster = d.cluster and b.broker_id = d.broker_id
left join credits as c on b.cluster = c.cluster and b.broker_id = c.broker_id
left join missing as k on b.cluster = k.cluster and b.broker_id::text = k.broker_id
left join stopped as s on b.cluster = s.cluster and b.broker_id = s.broker_id
left join reading as r on b.cluster = r.cluster and b.broker_id = r.broker_id

/*
title: Broker disk filling up
resource_kind: broker
owner_role: platform
maturity: stable
reads: [metrics.log_dir_hourly, metrics.replica_sample, inventory.topic_hourly, inventory.msk_broker_hourly,
  inventory.msk_cluster_hourly,
  inventory.pod_hourly, inventory.pod_claim_hourly]
params:
  warning_hours: {default: 72, unit: h, why: "a weekend"}
  critical_hours: {default: 12, unit: h, why: "a night"}
  high_ratio: {default: 0.85, unit: ratio, why: "a broker needs free space to take over replicas of a failed broker"}
  high_hours: {default: 720, unit: h, why: "above high_ratio, growth that fills the disk within a month counts; slower growth is noise"}
  beyond_ratio: {default: 0.02, unit: ratio of the disk, why: "peaks of retention cycles differ by as much"}
  critical_ratio:
    default: 0.95
    unit: ratio
    why: "one large segment or one reassignment fills the rest, and a full log directory goes offline"
  least_history: {default: 72, unit: h, why: "with less history, a one-day burst looks like growth"}
  room_days: {default: 14, unit: d, why: "added space should last two weeks"}
  target_ratio: {default: 0.7, unit: ratio, why: "leaves a third of the disk for failovers and reassignments"}
  least_kept: {default: 0.25, unit: ratio, why: "of a topic's retention; a larger cut changes what consumers can rely on"}
key_metrics: [usable_bytes, total_bytes, growth_bytes_per_second, hours_to_full, topics]
verdicts:
  nearly_full:
    status: firing
    severity: critical
    message: >-
      Log directory {{ log_dir }} of {{ name }} is {{ used_ratio }} full (limit {{ critical_ratio }}):
      {{ usable_bytes }} of {{ total_bytes }} are free.
    details: &details
      - "{% if growth_bytes_per_second > 0 %}Used space grows by {{ growth_bytes_per_second }}.{% endif %}"
      - "{% if topics %}Fastest growing topics in the last 24 h: {{ topics | listed('topic', 3) }}.{% endif %}"
      - "{% if partition_bytes %}A partition takes {{ partition_bytes }} on this broker on average.{% endif %}"
      - >-
        {% if failover_bytes %}If broker {{ failover_broker_id }} is lost and its replicas are rebuilt evenly,
        this disk receives at least {{ failover_bytes }}: {{ failover_ratio }} full.{% endif %}
      - "{% if added_usd_per_month %}The recommended space costs {{ added_usd_per_month }} at list price.{% endif %}"
    impact: &impact >-
      A full log directory goes offline: its replicas are lost to the cluster, and a broker without another directory
      shuts down.
    actions: &actions
      - >-
        {% if shortened_topic %}Lower the retention of topic {{ shortened_topic }} from {{ kept_seconds }} to
        {{ shorter_seconds }}: this frees {{ freed_bytes }} here within minutes. First check that its consumers have
        read the records that expire.{% endif %}
      - >-
        {% if topics and not shortened_topic %}Lower the retention of the fastest growing topics,
        {{ topics[0].topic }} first.{% endif %}
      - "{% if not topics %}Lower the retention of the largest topics on this broker.{% endif %}"
      - >-
        {% if msk_volume_gib %}Enlarge the storage of all brokers from {{ msk_size_gib }} to {{ msk_volume_gib }}: enough for
        {{ room_days }} of growth at {{ target_ratio }} used. MSK allows one change in six hours, and never shrinks
        storage.{% endif %}
      - >-
        {% if cluster_arn %}Turn on storage autoscaling for the cluster, or tiered storage for its largest topics.{% endif %}
      - >-
        {% if to_add_bytes and node_pool %}Enlarge the volumes of KafkaNodePool {{ node_pool }} (spec.storage) by
        {{ to_add_bytes }}: Strimzi resizes the claims of all its brokers, and never shrinks them.{% endif %}
      - >-
        {% if to_add_bytes and claim and not node_pool %}Enlarge claim {{ claim }} by {{ to_add_bytes }}; its StorageClass
        must allow expansion. A StatefulSet keeps the old size in its template.{% endif %}
      - >-
        {% if to_add_bytes and not cluster_arn and not claim %}Add {{ to_add_bytes }} of disk space: enough for {{ room_days }} of growth at
        {{ target_ratio }} used.{% endif %}
      - "Set retention.bytes on topics with bursty producers, so that no topic alone can fill the disk."
    commands: &commands
      - >-
        {% if msk_volume_gib %}aws kafka update-broker-storage --region {{ region }} --cluster-arn {{ cluster_arn }}
        --current-version {{ current_version }} --target-broker-ebs-volume-info
        '[{"KafkaBrokerNodeId": "All", "VolumeSizeGB": {{ msk_volume_gib }}}]'{% endif %}
      - >-
        {% if claim_size_gib and node_pool %}kubectl -n {{ namespace }} patch kafkanodepool {{ node_pool }} --type=json -p
        '[{"op": "replace", "path": "{{ size_path }}", "value": "{{ claim_size_gib.value | int }}Gi"}]'{% endif %}
      - >-
        {% if claim_size_gib and not node_pool %}kubectl -n {{ namespace }} patch pvc {{ claim }} -p
        '{"spec": {"resources": {"requests": {"storage": "{{ claim_size_gib.value | int }}Gi"}}}}'{% endif %}
      - "kafka-log-dirs.sh --bootstrap-server {{ bootstrap_servers }} --describe --broker-list {{ broker_id }}"
      - >-
        {% if largest_growth %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --describe --all
        --entity-type topics --entity-name {{ largest_growth }}{% endif %}
      - >-
        {% if shortened_topic %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter
        --entity-type topics --entity-name {{ shortened_topic }}
        --add-config retention.ms={{ shorter_retention_ms.value }}{% endif %}
  full_soon:
    status: firing
    severity: critical
    message: &forecast >-
      Log directory {{ log_dir }} of {{ name }} will be full in {{ hours_to_full }} ({{ full_at }}):
      {{ usable_bytes }} of {{ total_bytes }} are free.
    details: *details
    impact: *impact
    actions: *actions
    commands: *commands
  filling:
    status: firing
    severity: warning
    message: *forecast
    details: *details
    impact: *impact
    actions: *actions
    commands: *commands
  high:
    status: firing
    severity: warning
    message: >-
      Log directory {{ log_dir }} of {{ name }} is {{ used_ratio }} full (limit {{ high_ratio }}) and grows;
      the remaining {{ usable_bytes }} last {{ hours_to_full }}.
    details: *details
    impact: *impact
    actions: *actions
    commands: *commands
  rising:
    status: firing
    severity: warning
    message: >-
      Log directory {{ log_dir }} of {{ name }} is {{ used_ratio }} full, a 4-week high; at the growth of the last 24 h
      it is full in {{ hours_to_full }}.
    details: *details
    impact: *impact
    actions: *actions
    commands: *commands
  growth_paused:
    status: firing
    severity: warning
    message: >-
      Log directory {{ log_dir }} of {{ name }} is {{ used_ratio }} full; growth has paused, but at the rate of the last
      7 days it is full in {{ hours_to_full }}.
    details: *details
    impact: *impact
    actions: *actions
    commands: *commands
  enough_space:
    status: ok
    message: >-
      Log directory {{ log_dir }} of {{ name }} is {{ used_ratio }} full
      {%- if hours_to_full %}; at its growth rate it lasts {{ hours_to_full }}{% else %} and does not grow{% endif %}.
  short_history:
    status: unknown
    message: >-
      Not evaluated: log directory {{ log_dir }} of {{ name }} ({{ used_ratio }} full) has too little history for a
      growth rate: {{ known_hours }} of the last 7 days.
  not_reported:
    status: unknown
    message: >-
      Not evaluated: {{ name }} did not report the size of log directory {{ log_dir }} (offline, or Kafka older than 3.3).
causes:
  limits_stop_broker: &firing [nearly_full, full_soon, filling, high, rising, growth_paused]
caused_by:
  cleaner_fills_disk: *firing
open_after_hours: 1
clear_after_hours: 3
description: |
  The worst log directory of a broker counts. Time to full is free space divided by growth. Growth is the smaller of two
  Theil-Sen slopes of used space: over 7 days, and over 24 hours with the daily rhythm removed. Both must be positive, so
  that neither a burst nor a retention cycle counts as growth.

  Critical: full within critical_hours, or more than critical_ratio used. Warning: full within warning_hours, or more
  than high_ratio used and full within high_hours.

  Above high_ratio, growth counts only if usage exceeds its peak of the 4 weeks before the last 24 hours, so that weekly
  cycles do not fire. If usage exceeds that peak by beyond_ratio of the disk, the growth of the last 24 hours alone is
  enough. Growth that pauses over a night or a weekend still counts: if the last 7 days reached more than the 3 weeks
  before them, the median difference between an hour and the same hour of the previous day is used as well.
runbook: |
  ## Meaning
  A log directory of this broker is nearly full, or will be full soon at its current growth.

  ## Impact
  A full log directory goes offline. A broker without another directory shuts down; its leaders move to other brokers,
  which then receive its load.

  ## Diagnosis
  1. Compare the topics that grew most: a new producer, raised retention, or a changelog without compaction?
  2. Check the log cleaner: compacted topics grow without limit while it is stopped.

  ## Mitigation
  1. Lower retention.ms of topics that can be reloaded from their source. It takes effect within minutes.
  2. Grow the volume. EBS volumes grow while in use, but only once in six hours.
  3. Move replicas to brokers with free space.
limitations: |
  Amazon MSK: where Streamwarden does not connect to Kafka (`connect: false`), the directory KafkaDataLogs is the storage
  that CloudWatch reports (KafkaDataLogsDiskUsed), and the topics that grow are unknown.

  Brokers older than Kafka 3.3 do not report the size of their disks; host_disk_filling covers them where node exporter
  runs. Kafka does not report on which volume a directory lies, so added space is priced at the mean of the cluster's
  volumes. Whether consumers have read the records that a shorter retention deletes is not checked. The space that a lost
  broker would need excludes topics with unknown replication factor, and is not computed for brokers with several
  directories; Kafka itself does not move these replicas.
*/
with directory as (
  select
    *,
    total_bytes - usable_bytes as used_bytes,
    1 - usable_bytes / nullif(total_bytes, 0)::double precision as used_ratio
  from metrics.log_dir_hourly
  where hour = :hour
),

evaluated as (
  select
    d.*,
    g.*
  from directory as d
  cross join lateral public.disk_growth(
    'log_dir', d.cluster, d.broker_id::text, d.log_dir, d.hour, d.used_bytes, d.usable_bytes, d.used_ratio > :high_ratio,
    :least_history, :beyond_ratio * d.total_bytes
  ) as g
),

verdict as (
  select
    *,
    case
      when used_ratio is null then 'not_reported'
      when used_ratio > :critical_ratio then 'nearly_full'
      when hours_to_full <= :critical_hours then 'full_soon'
      when hours_to_full <= :warning_hours then 'filling'
      when is_highest and hours_to_full <= :high_hours then 'high'
      when is_beyond and hours_to_full_by_day <= :warning_hours then 'rising'
      when hours_to_full_by_days <= :warning_hours then 'growth_paused'
      when known_hours < :least_history or growth_per_hour is null then 'short_history'
      else 'enough_space'
    end as reason
  from evaluated
),

worst as (
  select distinct on (cluster, broker_id)
    *,
    case reason when 'growth_paused' then growth_by_days else growth_per_hour end as growth
  from verdict
  order by
    cluster asc, broker_id asc,
    array_position(
      array[
        'nearly_full', 'full_soon', 'filling', 'rising', 'growth_paused', 'high', 'not_reported', 'short_history',
        'enough_space'
      ],
      reason
    ) asc,
    hours_to_full asc nulls last, used_ratio desc, log_dir asc
),

ranked as (
  select
    w.cluster,
    w.broker_id,
    g.*
  from worst as w
  cross join lateral public.log_dir_growth(:hour, w.cluster, w.broker_id, w.log_dir) as g
  where w.reason not in ('enough_space', 'not_reported', 'short_history')
),

topic as (
  select
    cluster,
    broker_id,
    (array_agg(topic order by place))[1] as largest_growth,
    jsonb_agg(jsonb_build_object('topic', topic, 'grown_bytes', grown_bytes) order by place) as topics
  from ranked
  group by cluster, broker_id
),

-- Bytes of each broker, and the part that other brokers could take over: not the topics of which every other broker
-- already has a replica. Only for clusters with a firing broker.
broker_bytes as (
  select
    r.cluster,
    r.broker_id,
    b.brokers,
    sum(r.size_bytes) / nullif(sum(r.replicas), 0) as partition_bytes,
    sum(r.size_bytes) filter (where t.replication_factor < b.brokers) as movable_bytes
  from (
    select
      cluster,
      count(distinct broker_id) as brokers
    from directory
    group by cluster
  ) as b
  inner join metrics.replica_sample as r using (cluster)
  left join inventory.topic_hourly as t on r.hour = t.hour and r.cluster = t.cluster and r.topic = t.topic
  where r.hour = :hour and not r.is_future
  and exists (
    select from worst as w where w.cluster = r.cluster and w.reason not in ('enough_space', 'not_reported', 'short_history')
  )
  group by r.cluster, r.broker_id, b.brokers
),

-- An even share of the broker with the most movable bytes.
failover as (
  select distinct on (w.cluster, w.broker_id)
    w.cluster,
    w.broker_id,
    p.broker_id as failover_broker_id,
    p.movable_bytes / nullif(p.brokers - 1, 0) as failover_bytes
  from worst as w
  inner join broker_bytes as p on w.cluster = p.cluster and w.broker_id <> p.broker_id
  where p.movable_bytes > 0
  and 1 = (select count(*) from directory as d where d.cluster = w.cluster and d.broker_id = w.broker_id)
  order by w.cluster asc, w.broker_id asc, p.movable_bytes desc, p.broker_id asc
),

sized as (
  select
    *,
    nullif(greatest((used_bytes + greatest(growth, 0) * 24 * :room_days) / :target_ratio - total_bytes, 0), 0)
      as to_add_bytes
  from worst
),

-- The fastest growing topic where a shorter retention frees the missing space, or as much as least_kept allows.
shortened as (
  select distinct on (r.cluster, r.broker_id)
    r.cluster,
    r.broker_id,
    r.topic,
    t.retention_ms,
    kept.retention_ms as shorter_retention_ms,
    r.size_bytes * (1 - kept.retention_ms / t.retention_ms::double precision) as freed_bytes
  from ranked as r
  inner join sized as w on r.cluster = w.cluster and r.broker_id = w.broker_id
  inner join inventory.topic_hourly as t on r.cluster = t.cluster and r.topic = t.topic
  cross join lateral (
    select
      floor(
        t.retention_ms * greatest(1 - :target_ratio * w.to_add_bytes / r.size_bytes, :least_kept) / 3600000
      ) * 3600000 as retention_ms
  ) as kept
  where t.hour = :hour and t.cleanup_policy = 'delete' and kept.retention_ms > 0
  order by r.cluster asc, r.broker_id asc, r.place asc
)

select
  w.reason,
  w.cluster,
  w.broker_id::text as broker_id,
  w.log_dir,
  w.used_ratio,
  w.usable_bytes,
  w.total_bytes,
  w.growth / 3600 as growth_bytes_per_second,
  w.week_growth / 3600 as week_growth_bytes_per_second,
  w.day_growth / 3600 as day_growth_bytes_per_second,
  ends.hours as hours_to_full,
  :hour + interval '1 hour' + make_interval(secs => case when ends.hours < 8760 then ends.hours end * 3600)
    as full_at,
  w.known_hours,
  w.replicas,
  t.topics,
  t.largest_growth,
  s.topic as shortened_topic,
  s.retention_ms / 1000.0 as kept_seconds,
  s.shorter_retention_ms / 1000 as shorter_seconds,
  s.shorter_retention_ms::bigint as shorter_retention_ms,
  s.freed_bytes,
  w.to_add_bytes,
  w.to_add_bytes / power(1024, 3) * price.usd_per_gib as added_usd_per_month,
  h.partition_bytes,
  f.failover_broker_id::text as failover_broker_id,
  f.failover_bytes,
  (w.used_bytes + f.failover_bytes) / nullif(w.total_bytes, 0) as failover_ratio,
  msk.region,
  msk.cluster_arn,
  msk.current_version,
  msk.volume_gib as msk_size_gib,
  -- All brokers of a cluster have storage of the same size, which grows by at least a tenth.
  case
    when w.to_add_bytes is not null and msk.volume_gib > 0
      then least(16384, ceil(msk.volume_gib * greatest(1.1, 1 + w.to_add_bytes / w.total_bytes::double precision)))
  end as msk_volume_gib,
  claimed.namespace,
  claimed.claim,
  claimed.node_pool,
  claimed.size_path,
  ceil((claimed.size_bytes + w.to_add_bytes) / power(1024, 3)) as claim_size_gib
from sized as w
left join inventory.msk_brokers(:hour) as msk on w.cluster = msk.msk_cluster and w.broker_id = msk.msk_broker_id
left join (
  select
    p.cluster,
    p.broker_id,
    p.namespace,
    p.node_pool,
    min(c.claim) as claim,
    -- Strimzi names the claims of JBOD storage data-<volume>-<pod>.
    case when min(c.claim) = 'data-' || min(p.pod) then '/spec/storage/size' else '/spec/storage/volumes/0/size' end
      as size_path,
    min(c.size_bytes) as size_bytes
  from inventory.pod_hourly as p
  inner join inventory.pod_claim_hourly as c using (hour, kubernetes, namespace, pod)
  where p.hour = :hour
  group by p.cluster, p.broker_id, p.namespace, p.node_pool
  having count(*) = 1  -- of several volumes, which one has the directory is unknown
) as claimed on w.cluster = claimed.cluster and w.broker_id = claimed.broker_id
left join broker_bytes as h on w.cluster = h.cluster and w.broker_id = h.broker_id
left join failover as f on w.cluster = f.cluster and w.broker_id = f.broker_id
left join topic as t on w.cluster = t.cluster and w.broker_id = t.broker_id
left join shortened as s on w.cluster = s.cluster and w.broker_id = s.broker_id
left join inventory.broker_storage_price(:hour) as price on w.cluster = price.cluster
cross join lateral (
  select
    case w.reason
      when 'rising' then w.hours_to_full_by_day
      when 'growth_paused' then w.hours_to_full_by_days
      else w.hours_to_full
    end as hours
) as ends

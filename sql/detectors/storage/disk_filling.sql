/*
title: Broker's disk fills up
resource_kind: broker
owner_role: platform
maturity: stable
reads: [metrics.log_dir_hourly, metrics.replica_sample, inventory.topic_hourly]
params:
  warning_hours: {default: 72, unit: h, why: "a weekend"}
  critical_hours: {default: 12, unit: h, why: "a night"}
  high_ratio: {default: 0.85, unit: ratio, why: "a broker's disk must take over what a dead peer held"}
  high_hours: {default: 720, unit: h, why: "what is that full and ends within a month still grows; slower growth is noise"}
  beyond_ratio: {default: 0.02, unit: ratio of the disk, why: "the tops of saw-teeth differ by as much"}
  critical_ratio: {default: 0.95, unit: ratio, why: "one large segment or one reassignment from the end: a full log directory goes offline"}
  least_history: {default: 72, unit: h, why: "in fewer hours a burst of a day looks like growth"}
  room_days: {default: 14, unit: d, why: "what is added holds for two weeks"}
  target_ratio: {default: 0.7, unit: ratio, why: "and leaves a third for failovers and reassignments"}
  least_kept: {default: 0.25, unit: ratio, why: "of a topic's retention: with less of it the readers have another topic"}
key_metrics: [usable_bytes, total_bytes, growth_bytes_per_second, hours_to_full, topics]
verdicts:
  nearly_full:
    status: firing
    severity: critical
    message: "{{ log_dir }} is {{ used_ratio }} full: {{ usable_bytes }} of {{ total_bytes }} are free{% if hours_to_full %}, and at its growth for {{ hours_to_full }}{% endif %}."
    actions:
      - &cure "{% if to_add_bytes %}Add {{ to_add_bytes }}{% if added_usd_per_month %} ({{ added_usd_per_month }} by list price){% endif %}: room for {{ room_days }} at {{ target_ratio }}. {% endif %}{% if shortened_topic %}Or lower the retention of {{ shortened_topic }}, of what grows the most that is deleted by time, from {{ kept_seconds }} to {{ shorter_seconds }}: that frees {{ freed_bytes }} here within minutes, if its readers are that far.{% else %}Or lower the retention of the topics that grow most{% if topics %}, first {{ topics[0].topic }}{% endif %}.{% endif %}{% if partition_bytes %} A partition takes {{ partition_bytes }} here on the mean.{% endif %}{% if failover_bytes %} Were broker {{ failover_broker_id }} lost and what it holds made anew on the others, an even share would bring at least {{ failover_bytes }} here: {{ failover_ratio }} full.{% endif %}"
    commands: &commands
      - "kafka-log-dirs.sh --bootstrap-server {{ bootstrap_servers }} --describe --broker-list {{ broker_id }}"
      - "{% if largest_growth %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --describe --all --entity-type topics --entity-name {{ largest_growth }}{% endif %}"
      - "{% if shortened_topic %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --entity-type topics --entity-name {{ shortened_topic }} --add-config retention.ms={{ shorter_retention_ms.value }}{% endif %}"
  full_soon:
    status: firing
    severity: critical
    message: "{{ log_dir }} is full in {{ hours_to_full }}, at {{ full_at }}: {{ usable_bytes }} of {{ total_bytes }} are free, and it grows by {{ growth_bytes_per_second }}."
    actions:
      - *cure
    commands: *commands
  filling:
    status: firing
    severity: warning
    message: "{{ log_dir }} is full in {{ hours_to_full }}, at {{ full_at }}: {{ usable_bytes }} of {{ total_bytes }} are free, and it grows by {{ growth_bytes_per_second }}."
    actions:
      - *cure
    commands: *commands
  high:
    status: firing
    severity: warning
    message: "{{ log_dir }} is {{ used_ratio }} full and still grows: {{ usable_bytes }} are left, at its growth for {{ hours_to_full }}."
    actions:
      - *cure
    commands: *commands
  rising:
    status: firing
    severity: warning
    message: "{{ log_dir }} is {{ used_ratio }} full, more than ever in 4 weeks, and at the growth of the last 24 h full in {{ hours_to_full }}: {{ usable_bytes }} of {{ total_bytes }} are free."
    actions:
      - *cure
    commands: *commands
  pausing:
    status: firing
    severity: warning
    message: "{{ log_dir }} is {{ used_ratio }} full and doesn't grow now, but most of the last 7 days brought it nearer to its end: at what they added it is full in {{ hours_to_full }}. {{ usable_bytes }} of {{ total_bytes }} are free."
    actions:
      - *cure
    commands: *commands
  room: {status: ok, message: "{{ log_dir }} is {{ used_ratio }} full{% if hours_to_full %}; it has room for {{ hours_to_full }}{% else %} and doesn't grow{% endif %}."}
  short_history: {status: unknown, message: "{{ log_dir }} is {{ used_ratio }} full; whether it grows isn't known: {{ known_hours }} of the last 7 days are known."}
  untold: {status: unknown, message: "The broker does not tell the size of {{ log_dir }}: it is offline, or Kafka is older than 3.3."}
causes:
  limits_stop_broker: [nearly_full, full_soon, filling, high, rising, pausing]
caused_by:
  cleaner_fills_disk: [nearly_full, full_soon, filling, high, rising, pausing]
open_after_hours: 1
clear_after_hours: 3
description: |
  Of a broker's directories the worst counts. Full in: free bytes by the smaller of two slopes (Theil and Sen) of what is
  used, of 7 days and of 24 hours, these without what comes and goes by the day; both must grow, so that neither a burst
  nor the saw-teeth of retention are growth.
  Warning within warning_hours, or above high_ratio and full within high_hours; critical within critical_hours, or above
  critical_ratio. Above high_ratio it grows only where more is used than ever in the 4 weeks before the last 24 hours: what
  comes and goes by the week is no growth; where it is more by beyond_ratio of the disk, those hours' growth alone is
  enough, for who waits has no room left. A night or a weekend that takes less is no end of it: where the last 7 days had
  more than the 3 weeks before, the median of what an hour has beyond the same hour of the day before is growth as well,
  within warning_hours.
runbook: |
  1. Which topics grew most? A new producer, a retention that was raised, a consumer group's changelog without compaction.
  2. Lower the retention of what can be had again, for a while: retention.ms takes effect within minutes.
  3. Grow the volume; EBS volumes grow while in use, but only once in six hours.
  4. A directory that is full goes offline, and the broker with it if it has no other: its leaders move, and the peers
     take on what it held.
limitations: |
  Brokers older than Kafka 3.3 don't tell the size of their disks: host_disk_filling judges them where node exporter
  runs. Which volume a directory lies on isn't told: a GiB is priced as the mean of the cluster's volumes. Nor is whether a
  topic's readers are as far as a shorter retention wants. What a lost peer adds leaves out topics whose replication isn't
  known, and isn't told of a broker with several directories; Kafka moves nothing by itself.
*/
with directory as (
  select
    *,
    total_bytes - usable_bytes as used_bytes,
    1 - usable_bytes / nullif(total_bytes, 0)::double precision as used_ratio
  from metrics.log_dir_hourly
  where hour = :hour
),

judged as (
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
      when used_ratio is null then 'untold'
      when used_ratio > :critical_ratio then 'nearly_full'
      when hours_to_full <= :critical_hours then 'full_soon'
      when hours_to_full <= :warning_hours then 'filling'
      when is_highest and hours_to_full <= :high_hours then 'high'
      when is_beyond and hours_to_full_by_day <= :warning_hours then 'rising'
      when hours_to_full_by_days <= :warning_hours then 'pausing'
      when known_hours < :least_history or growth_per_hour is null then 'short_history'
      else 'room'
    end as reason
  from judged
),

worst as (
  select distinct on (cluster, broker_id)
    *,
    case reason when 'pausing' then growth_by_days else growth_per_hour end as growth
  from verdict
  order by
    cluster asc, broker_id asc,
    array_position(
      array['nearly_full', 'full_soon', 'filling', 'rising', 'pausing', 'high', 'untold', 'short_history', 'room'], reason
    ) asc,
    hours_to_full asc nulls last, used_ratio desc, log_dir asc
),

-- Where nothing is known of a day ago, nothing is known of growth; else what wasn't there then has grown by all it is.
known_then as (
  select distinct
    cluster,
    broker_id,
    log_dir
  from metrics.replica_sample
  where hour = :hour - interval '24 hours'
),

replica as (
  select
    r.cluster,
    r.broker_id,
    r.log_dir,
    r.topic,
    sum(r.size_bytes) filter (where r.hour = w.hour) as size_bytes,
    sum(case when r.hour = w.hour then r.size_bytes else -r.size_bytes end) as grown_bytes
  from worst as w
  inner join metrics.replica_sample as r
    on w.cluster = r.cluster and w.broker_id = r.broker_id and w.log_dir = r.log_dir
  inner join known_then as k
    on w.cluster = k.cluster and w.broker_id = k.broker_id and w.log_dir = k.log_dir
  where r.hour in (:hour, :hour - interval '24 hours')
  and w.reason not in ('room', 'untold', 'short_history')
  group by r.cluster, r.broker_id, r.log_dir, r.topic
),

ranked as (
  select *
  from (
    select
      *,
      row_number() over (partition by cluster, broker_id order by grown_bytes desc, topic asc) as place
    from replica
    where grown_bytes > 0
  ) as r
  where place <= 5
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

-- What each broker holds, and of that what the others could hold if it were lost: where each of them has a replica of a
-- topic already, there is no place for another. Of clusters with a broker in alarm.
held as (
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
    select from worst as w where w.cluster = r.cluster and w.reason not in ('room', 'untold', 'short_history')
  )
  group by r.cluster, r.broker_id, b.brokers
),

-- Of the peer that holds most, an even share.
failover as (
  select distinct on (w.cluster, w.broker_id)
    w.cluster,
    w.broker_id,
    p.broker_id as failover_broker_id,
    p.movable_bytes / nullif(p.brokers - 1, 0) as failover_bytes
  from worst as w
  inner join held as p on w.cluster = p.cluster and w.broker_id <> p.broker_id
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

-- Of what grows, the first topic whose shorter retention frees something: what is missing, or as much as it may give.
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
  (w.used_bytes + f.failover_bytes) / nullif(w.total_bytes, 0) as failover_ratio
from sized as w
left join held as h on w.cluster = h.cluster and w.broker_id = h.broker_id
left join failover as f on w.cluster = f.cluster and w.broker_id = f.broker_id
left join topic as t on w.cluster = t.cluster and w.broker_id = t.broker_id
left join shortened as s on w.cluster = s.cluster and w.broker_id = s.broker_id
left join inventory.broker_storage_price(:hour) as price on w.cluster = price.cluster
cross join lateral (
  select
    case w.reason
      when 'rising' then w.hours_to_full_by_day
      when 'pausing' then w.hours_to_full_by_days
      else w.hours_to_full
    end as hours
) as ends

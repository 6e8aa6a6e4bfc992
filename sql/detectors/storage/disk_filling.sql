/*
title: Broker's disk fills up
about: broker
owner: platform
maturity: stable
reads: [metrics.log_dir_hourly, metrics.replica_sample]
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
convinces: [usable_bytes, total_bytes, growth_bytes_per_second, hours_to_full, topics]
says:
  nearly_full:
    status: alarm
    severity: critical
    reason: "{{ log_dir }} is {{ used_ratio }} full: {{ usable_bytes }} of {{ total_bytes }} are free{% if hours_to_full %}, and at its growth for {{ hours_to_full }}{% endif %}."
    cure: &cure "{% if bytes_to_add %}Add {{ bytes_to_add }}: room for {{ room_days }} at {{ target_ratio }}. {% endif %}Or lower the retention of the topics that grow most{% if topics %}, first {{ topics[0].topic }}{% endif %}."
    commands: &commands
      - "kafka-log-dirs.sh --bootstrap-server {{ bootstrap_servers }} --describe --broker-list {{ broker_id }}"
      - "{% if largest_growth %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --describe --all --entity-type topics --entity-name {{ largest_growth }}{% endif %}"
  full_soon:
    status: alarm
    severity: critical
    reason: "{{ log_dir }} is full in {{ hours_to_full }}: {{ usable_bytes }} of {{ total_bytes }} are free, and it grows by {{ growth_bytes_per_second }}."
    cure: *cure
    commands: *commands
  filling:
    status: alarm
    severity: warning
    reason: "{{ log_dir }} is full in {{ hours_to_full }}: {{ usable_bytes }} of {{ total_bytes }} are free, and it grows by {{ growth_bytes_per_second }}."
    cure: *cure
    commands: *commands
  high:
    status: alarm
    severity: warning
    reason: "{{ log_dir }} is {{ used_ratio }} full and still grows: {{ usable_bytes }} are left, at its growth for {{ hours_to_full }}."
    cure: *cure
    commands: *commands
  rising:
    status: alarm
    severity: warning
    reason: "{{ log_dir }} is {{ used_ratio }} full, more than ever in 4 weeks, and at the growth of the last 24 h full in {{ hours_to_full }}: {{ usable_bytes }} of {{ total_bytes }} are free."
    cure: *cure
    commands: *commands
  pausing:
    status: alarm
    severity: warning
    reason: "{{ log_dir }} is {{ used_ratio }} full and doesn't grow now, but most of the last 7 days brought it nearer to its end: at what they added it is full in {{ hours_to_full }}. {{ usable_bytes }} of {{ total_bytes }} are free."
    cure: *cure
    commands: *commands
  room: {status: ok, reason: "{{ log_dir }} is {{ used_ratio }} full{% if hours_to_full %}; it has room for {{ hours_to_full }}{% else %} and doesn't grow{% endif %}."}
  short_history: {status: skip, reason: "{{ log_dir }} is {{ used_ratio }} full; whether it grows isn't known: {{ known_hours }} of the last 7 days are known."}
  untold: {status: skip, reason: "The broker does not tell the size of {{ log_dir }}: it is offline, or Kafka is older than 3.3."}
causes:
  limits_end_broker: [nearly_full, full_soon, filling, high, rising, pausing]
effect_of:
  cleaner_fills_disk: [nearly_full, full_soon, filling, high, rising, pausing]
open_after_hours: 1
clear_after_hours: 3
rule: |
  Of a broker's directories the worst counts. Full in: free bytes by the smaller of two slopes (Theil and Sen) of what is
  used, of 7 days and of 24 hours; both must grow, so that neither a burst nor the saw-teeth of retention are growth.
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
blind_spots: |
  Brokers older than Kafka 3.3 don't tell the size of their disks. Machines of applications and other file systems of
  brokers aren't judged. Which volume a directory lies on, its price, and what a failover adds aren't told.
*/
with directory as (
  select
    *,
    total_bytes - usable_bytes as used_bytes,
    1 - usable_bytes / nullif(total_bytes, 0)::double precision as used_ratio
  from metrics.log_dir_hourly
  where hour = cast(:hour as timestamptz)
),

grown as (
  select
    d.cluster,
    d.broker_id,
    d.log_dir,
    count(h.usable_bytes) as known_hours,
    public.theil_sen(array_agg(h.hour), array_agg(was.used_bytes)) as week_growth,
    public.theil_sen(array_agg(h.hour), array_agg(was.used_bytes_of_day)) as day_growth
  from directory as d
  inner join metrics.log_dir_hourly as h
    on d.cluster = h.cluster and d.broker_id = h.broker_id and d.log_dir = h.log_dir
    and h.hour between d.hour - interval '7 days' and d.hour
  cross join lateral (
    select
      (h.total_bytes - h.usable_bytes)::double precision as used_bytes,
      case when h.hour > d.hour - interval '24 hours' then (h.total_bytes - h.usable_bytes)::double precision end
        as used_bytes_of_day
  ) as was
  group by d.cluster, d.broker_id, d.log_dir, d.hour
),

-- Of those that are high.
month as (
  select
    h.cluster,
    h.broker_id,
    h.log_dir,
    h.hour,
    extract(epoch from cast(:hour as timestamptz) - h.hour) / 3600 as hours_ago,
    h.total_bytes - h.usable_bytes as used_bytes
  from directory as d
  inner join metrics.log_dir_hourly as h using (cluster, broker_id, log_dir)
  where d.used_ratio > :high_ratio
  and h.hour between cast(:hour as timestamptz) - interval '28 days' and cast(:hour as timestamptz)
),

-- What was used most, and what most of the week's days added, which neither the rhythm of the day nor a single burst or a
-- move changes.
high as (
  select
    m.cluster,
    m.broker_id,
    m.log_dir,
    max(m.used_bytes) as top,
    max(m.used_bytes) filter (where m.hours_ago >= 24) as top_before_day,
    max(m.used_bytes) filter (where m.hours_ago >= 168) as top_before_week,
    percentile_cont(0.5) within group (order by (m.used_bytes - b.used_bytes)::double precision)
      filter (where m.hours_ago < 168) / 24 as growth_by_days
  from month as m
  left join month as b
    on m.cluster = b.cluster and m.broker_id = b.broker_id and m.log_dir = b.log_dir
    and m.hour - interval '24 hours' = b.hour
  group by m.cluster, m.broker_id, m.log_dir
),

judged as (
  select
    d.*,
    g.known_hours,
    s.growth_per_hour,
    t.growth_by_days,
    case when g.known_hours >= :least_history and s.growth_per_hour > 0
      then d.usable_bytes / s.growth_per_hour
    end as hours_to_full,
    case when g.known_hours >= :least_history and g.day_growth > 0
      then d.usable_bytes / g.day_growth
    end as hours_to_full_by_day,
    case when g.known_hours >= :least_history and t.top > t.top_before_week and t.growth_by_days > 0
      then d.usable_bytes / t.growth_by_days
    end as hours_to_full_by_days,
    d.used_bytes > t.top_before_day as is_highest,
    d.used_bytes > t.top_before_day + :beyond_ratio * d.total_bytes as is_beyond
  from directory as d
  left join grown as g on d.cluster = g.cluster and d.broker_id = g.broker_id and d.log_dir = g.log_dir
  left join high as t on d.cluster = t.cluster and d.broker_id = t.broker_id and d.log_dir = t.log_dir
  -- Null if either isn't known: least() alone would take the other.
  cross join lateral (
    select case when num_nulls(g.week_growth, g.day_growth) = 0 then least(g.week_growth, g.day_growth) end
      as growth_per_hour
  ) as s
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
    end as because
  from judged
),

worst as (
  select distinct on (cluster, broker_id)
    *,
    case because when 'pausing' then growth_by_days else growth_per_hour end as growth
  from verdict
  order by
    cluster asc, broker_id asc,
    array_position(
      array['nearly_full', 'full_soon', 'filling', 'rising', 'pausing', 'high', 'untold', 'short_history', 'room'], because
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
  where hour = cast(:hour as timestamptz) - interval '24 hours'
),

replica as (
  select
    r.cluster,
    r.broker_id,
    r.log_dir,
    r.topic,
    sum(case when r.hour = w.hour then r.size_bytes else -r.size_bytes end) as grown_bytes
  from worst as w
  inner join metrics.replica_sample as r
    on w.cluster = r.cluster and w.broker_id = r.broker_id and w.log_dir = r.log_dir
  inner join known_then as k
    on w.cluster = k.cluster and w.broker_id = k.broker_id and w.log_dir = k.log_dir
  where r.hour in (cast(:hour as timestamptz), cast(:hour as timestamptz) - interval '24 hours')
  and w.because not in ('room', 'untold', 'short_history')
  group by r.cluster, r.broker_id, r.log_dir, r.topic
),

topic as (
  select
    cluster,
    broker_id,
    (array_agg(topic order by place))[1] as largest_growth,
    jsonb_agg(jsonb_build_object('topic', topic, 'grown_bytes', grown_bytes) order by place) as topics
  from (
    select
      *,
      row_number() over (partition by cluster, broker_id order by grown_bytes desc, topic asc) as place
    from replica
    where grown_bytes > 0
  ) as ranked
  where place <= 5
  group by cluster, broker_id
)

select
  w.because,
  w.cluster,
  w.broker_id::text as broker_id,
  w.log_dir,
  w.used_ratio,
  w.usable_bytes,
  w.total_bytes,
  w.growth / 3600 as growth_bytes_per_second,
  case w.because
    when 'rising' then w.hours_to_full_by_day
    when 'pausing' then w.hours_to_full_by_days
    else w.hours_to_full
  end as hours_to_full,
  w.known_hours,
  w.replicas,
  t.topics,
  t.largest_growth,
  nullif(
    greatest(
      (w.used_bytes + greatest(w.growth, 0) * 24 * :room_days) / :target_ratio - w.total_bytes, 0
    ), 0
  ) as bytes_to_add
from worst as w
left join topic as t on w.cluster = t.cluster and w.broker_id = t.broker_id

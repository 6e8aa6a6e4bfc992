/*
title: Broker is slower than it was, or than its peers
resource_kind: broker
owner_role: platform
maturity: stable
reads: [metrics.broker_hourly, metrics.broker_sample, metrics.node_hourly, inventory.volume_hourly, metrics.volume_hourly]
params:
  change_ratio: {default: 1.8, unit: ratio, why: "flushes of 20 ms instead of 10 ms are felt downstream already"}
  change_floor_ms: {default: 10, unit: ms, why: "what is less slow than this nobody feels"}
  mads: {default: 6, unit: MAD, why: "what lies within six deviations of its usual is its noise"}
  history_ratio: {default: 3, unit: ratio, why: "of its own 90th percentile of 14 days: no peak of those was near it"}
  peer_ratio: {default: 3, unit: ratio, why: "brokers with equal work differ by less"}
  hurt_ratio: {default: 2, unit: ratio, why: "producers, and followers, that wait twice as long notice"}
  calm_ratio: {default: 0.8, unit: ratio, why: "followers wait for records where less than this part of the usual is written, not for the broker"}
  limit_minutes: {default: 6, unit: min, why: "a tenth of the hour at a limit of the volume, or of its instance"}
  waiting_operations: {default: 8, unit: operations, why: "an SSD volume that does 3,000 IOPS has three to six of them under way"}
  empty_percent: {default: 1, unit: "%", why: "without credits a volume falls to its baseline"}
  cold_ratio: {default: 0.1, unit: ratio, why: "of what is sent: the page cache serves readers that keep up, so that disks read next to nothing"}
  floor_bytes_per_second: {default: 1048576, unit: bytes/s, why: "with hardly any traffic the time per byte explodes"}
  min_flushes: {default: 30, unit: flushes, why: "fewer don't make a 95th percentile"}
  least_history: {default: 168, unit: h, why: "a week has every hour that is busy by habit"}
  start_minutes: {default: 60, unit: min, why: "after a start it reads its logs and catches up"}
key_metrics: [log_flush_p95_ms_min, usual_log_flush_p95_ms, produce_p99_ms, usual_produce_p99_ms, moved]
verdicts:
  hurts:
    status: firing
    severity: critical
    message: "{% if producers_hurt %}Producers wait: 1 % of their requests take longer than {{ produce_p99_ms }}, {{ usual_produce_p99_ms }} is usual. {% endif %}{% if followers_hurt %}Followers wait: 1 % of their fetches take longer than {{ fetch_follower_p99_ms }}, {{ usual_fetch_follower_p99_ms }} is usual. {% endif %}5 % of the log flushes take longer than {{ log_flush_p95_ms_min }}, {{ usual_log_flush_p95_ms }} is usual."
    actions:
      - &cure "Look at what moved with it. Its volume first: bucket, queue. Move leaders away while it is slow."
    commands: &commands
      - "kafka-log-dirs.sh --bootstrap-server {{ bootstrap_servers }} --describe --broker-list {{ broker_id }}"
  slowed:
    status: firing
    severity: warning
    message: "5 % of the log flushes take longer than {{ log_flush_p95_ms_min }}; {{ usual_log_flush_p95_ms }} is usual{% if usual_kind == 'hour_of_week' %} at this hour of the week{% endif %}. Neither producers nor followers wait longer yet."
    actions:
      - *cure
    commands: *commands
  slow_tail:
    status: firing
    severity: warning
    message: "One log flush of a thousand takes longer than {{ log_flush_p999_ms }}, {{ history_log_flush_p999_ms }} was seldom exceeded in 14 days; flushing takes {{ flush_ratio }} of the time for the bytes that it did then."
    actions:
      - *cure
    commands: *commands
  slower_than_peers:
    status: firing
    severity: warning
    message: "One log flush of a thousand takes longer than {{ log_flush_p999_ms }}, {{ peer_log_flush_p999_ms }} on the median of its {{ peers }} peers, which take far less time for the same bytes."
    actions:
      - *cure
    commands: *commands
  all_slower: {status: ok, message: "5 % of the log flushes take longer than {{ log_flush_p95_ms_min }}, {{ usual_log_flush_p95_ms }} is usual; but its {{ peers | counted('peer') }} slowed down as well: it isn't this broker."}
  usual: {status: ok, message: "5 % of the log flushes take longer than {{ log_flush_p95_ms }}; {{ usual_log_flush_p95_ms }} is usual."}
  starting: {status: unknown, message: "It was started at {{ process_started_at }}: it catches up."}
  quiet: {status: unknown, is_not_applicable: true, message: "Too little is written to judge: {{ written_bytes_per_second }}, {{ flushes }} flushes."}
  short_history: {status: unknown, message: "What is usual is not known: of the last 4 weeks only {{ known_hours }} are."}
  controller: {status: unknown, is_not_applicable: true, message: "It is a controller and holds no logs."}
  silent: {status: unknown, message: "The broker did not answer over JMX."}
  untold: {status: unknown, message: "The broker did not tell its flush times, or its traffic."}
causes:
  broker_slows_flushes: &slower [hurts, slowed, slow_tail, slower_than_peers]
  broker_loses_replicas: *slower
  leader_loses_followers: *slower
  broker_delays_consumers: *slower
caused_by:
  disk_slows_broker: *slower
  cpu_slows_broker: *slower
  reassignment_slows_brokers: *slower
open_after_hours: 1
clear_after_hours: 2
description: |
  Slowed: the 95th percentile of the log flushes is change_ratio times its usual (same hour of the week), by at least
  change_floor_ms and mads deviations, in every sample of the hour. A slow tail: the 99.9th percentile and the flush time
  per byte written both exceed history_ratio times their own 90th percentile of 14 days. Slower than its peers: both
  exceed peer_ratio times the peers' median in the last 24 h: a batch of one hour that it leads is no difference. Critical
  if the 99th percentile of produce requests is hurt_ratio times its usual by now, or that of the followers' fetches while
  no less is written than usual. Where three of four peers slowed down as well, in this hour or the one before (a change
  of settings, a cluster's peak), it is
  slow only as far as it slowed down change_ratio times as much as they did.
runbook: |
  1. What moved with it? Disk: the volume's bucket, queue and minutes at a limit. Page cache: a reassignment or a reader
     of old data, for which the disk reads.
     CPU: requests, compression, TLS. Traffic: a producer that grew.
  2. Only this broker? Compare its instance and its volume with those of a peer: type, size, IOPS.
  3. Move leaders away while it is slow; replace the instance if nothing explains it.
limitations: |
  The histograms decay: they are of some five minutes before the samples. What has been slow for as long as it is known is
  its usual; only its peers tell. A whole cluster that slows down is log_flush_slow's, by its absolute limits. Kafka leaves
  flushing to the operating system by default: brokers with few flushes aren't judged.
*/
with seen as (
  select
    *,
    bytes_in_per_second + coalesce(replication_bytes_in_per_second, 0) as written_bytes_per_second,
    log_flushes_per_second * covered_seconds as flushes
  from metrics.broker_hourly
  where hour between :hour - interval '672 hours' and :hour
),

worked as (
  select
    *,
    log_flush_mean_ms * log_flushes_per_second / nullif(written_bytes_per_second, 0) as flush_ms_per_byte
  from seen
),

history as materialized (
  select
    cluster,
    endpoint,
    array_agg(hour) as hours,
    array_agg(log_flush_p95_ms) as log_flush_p95_ms,
    array_agg(produce_p99_ms) as produce_p99_ms,
    array_agg(fetch_follower_p99_ms) as fetch_follower_p99_ms,
    array_agg(cpu_ratio) as cpu_ratio,
    array_agg(written_bytes_per_second) as written_bytes_per_second,
    array_agg(bytes_out_per_second) as bytes_out_per_second,
    percentile_cont(0.9) within group (order by log_flush_p999_ms)
      filter (where hour >= :hour - interval '14 days') as log_flush_p999_ms,
    percentile_cont(0.9) within group (order by flush_ms_per_byte)
      filter (
        where hour >= :hour - interval '14 days'
        and written_bytes_per_second >= :floor_bytes_per_second
      ) as flush_ms_per_byte
  from worked
  where hour < :hour
  group by cluster, endpoint
),

lately as (
  select
    cluster,
    endpoint,
    max(log_flush_p95_ms) filter (where hour = :hour - interval '1 hour') as last_log_flush_p95_ms,
    percentile_cont(0.5) within group (order by log_flush_p999_ms) as log_flush_p999_ms,
    percentile_cont(0.5) within group (order by flush_ms_per_byte) as flush_ms_per_byte
  from worked
  where hour > :hour - interval '24 hours'
  group by cluster, endpoint
),

sampled as (
  select
    cluster,
    endpoint,
    min(value) as log_flush_p95_ms_min
  from metrics.broker_sample
  where hour = :hour and metric = 'log_flush_p95_ms'
  group by cluster, endpoint
),

broker as materialized (
  select
    w.*,
    s.log_flush_p95_ms_min,
    h.hours,
    h.produce_p99_ms as past_produce_p99_ms,
    h.fetch_follower_p99_ms as past_fetch_follower_p99_ms,
    h.cpu_ratio as past_cpu_ratio,
    h.written_bytes_per_second as past_written,
    h.bytes_out_per_second as past_sent,
    h.log_flush_p999_ms as history_log_flush_p999_ms,
    h.flush_ms_per_byte as history_flush_ms_per_byte,
    u.median as usual_ms,
    u.mad as usual_mad_ms,
    u.known_hours,
    u.kind as usual_kind,
    s.log_flush_p95_ms_min / nullif(u.median, 0) as slower_ratio,
    l.last_log_flush_p95_ms / nullif(last.median, 0) as last_slower_ratio,
    l.log_flush_p999_ms as day_log_flush_p999_ms,
    l.flush_ms_per_byte as day_flush_ms_per_byte,
    w.written_bytes_per_second < :floor_bytes_per_second or w.flushes < :min_flushes as is_quiet
  from worked as w
  left join sampled as s on w.cluster = s.cluster and w.endpoint = s.endpoint
  left join history as h on w.cluster = h.cluster and w.endpoint = h.endpoint
  left join lately as l on w.cluster = l.cluster and w.endpoint = l.endpoint
  cross join lateral public.topic_baseline(w.hour, h.hours, h.log_flush_p95_ms, cast(:least_history as integer)) as u
  -- A nightly backup in the hour before is usual for that hour.
  cross join lateral public.topic_baseline(
    w.hour - interval '1 hour', h.hours, h.log_flush_p95_ms, cast(:least_history as integer)
  ) as last
  where w.hour = :hour
),

-- Controllers tell nothing of logs. A peer of which something isn't known hasn't slowed down for sure.
compared as (
  select
    b.cluster,
    b.endpoint,
    count(*) as peers,
    percentile_disc(0.25) within group (order by coalesce(greatest(p.slower_ratio, p.last_slower_ratio), 1))
      as slower_ratio,
    percentile_cont(0.5) within group (order by p.day_log_flush_p999_ms) as day_log_flush_p999_ms,
    percentile_cont(0.5) within group (order by p.day_flush_ms_per_byte) as day_flush_ms_per_byte,
    percentile_cont(0.5) within group (order by p.log_flush_p999_ms) as peer_log_flush_p999_ms
  from broker as b
  inner join broker as p on b.cluster = p.cluster and b.endpoint <> p.endpoint
  where p.is_quiet is distinct from true
  and coalesce(p.bytes_in_per_second, p.log_flush_p95_ms, p.partitions) is not null
  group by b.cluster, b.endpoint
),

judged as (
  select
    b.*,
    c.peers,
    c.peer_log_flush_p999_ms,
    coalesce(c.slower_ratio >= :change_ratio, false) as all_slower,
    b.slower_ratio >= :change_ratio * coalesce(c.slower_ratio, 1) as is_alone,
    produce.median as usual_produce_p99_ms,
    follower.median as usual_fetch_follower_p99_ms,
    cpu.median as usual_cpu_ratio,
    written.median as usual_written,
    sent.median as usual_sent,
    b.flush_ms_per_byte / nullif(b.history_flush_ms_per_byte, 0) as flush_ratio,
    b.slower_ratio >= :change_ratio
    and b.log_flush_p95_ms_min >= b.usual_ms + greatest(:change_floor_ms, :mads * b.usual_mad_ms) as has_slowed,
    b.usual_ms is not null
    and b.log_flush_p999_ms > :history_ratio * b.history_log_flush_p999_ms
    and b.log_flush_p999_ms >= b.history_log_flush_p999_ms + :change_floor_ms
    and b.flush_ms_per_byte > :history_ratio * b.history_flush_ms_per_byte as has_slow_tail,
    c.peers >= 2
    and b.log_flush_p999_ms >= c.peer_log_flush_p999_ms + :change_floor_ms
    and b.day_log_flush_p999_ms > :peer_ratio * c.day_log_flush_p999_ms
    and b.day_flush_ms_per_byte > :peer_ratio * c.day_flush_ms_per_byte as is_behind,
    coalesce(b.produce_p99_ms >= greatest(:hurt_ratio * produce.median, produce.median + :change_floor_ms), false)
      as producers_hurt,
    coalesce(
      b.fetch_follower_p99_ms >= greatest(:hurt_ratio * follower.median, follower.median + :change_floor_ms)
      and b.written_bytes_per_second >= :calm_ratio * written.median,
      false
    ) as followers_hurt
  from broker as b
  left join compared as c on b.cluster = c.cluster and b.endpoint = c.endpoint
  cross join lateral public.topic_baseline(b.hour, b.hours, b.past_produce_p99_ms, cast(:least_history as integer)) as produce
  cross join lateral public.topic_baseline(
    b.hour, b.hours, b.past_fetch_follower_p99_ms, cast(:least_history as integer)
  ) as follower
  cross join lateral public.topic_baseline(b.hour, b.hours, b.past_cpu_ratio, cast(:least_history as integer)) as cpu
  cross join lateral public.topic_baseline(b.hour, b.hours, b.past_written, cast(:least_history as integer)) as written
  cross join lateral public.topic_baseline(b.hour, b.hours, b.past_sent, cast(:least_history as integer)) as sent
),

alone as (
  select
    *,
    has_slowed and is_alone as has_slowed_alone,
    has_slow_tail and not all_slower as has_slow_tail_alone
  from judged
),

-- Of each instance the volume that is held back most, and what all of them read.
volume as (
  select distinct on (a.instance_id)
    a.instance_id,
    v.volume_id,
    v.minutes_throttled,
    v.queue_length_mean,
    v.burst_balance_min_percent,
    sum(v.read_bytes) over (partition by a.instance_id) / 3600 as read_bytes_per_second,
    sum(v.read_baseline_bytes_per_second) over (partition by a.instance_id) as usual_read_bytes_per_second
  from inventory.volume_hourly as a
  inner join metrics.volume_hourly as v
    on a.hour = v.hour and a.account = v.account and a.region = v.region and a.volume_id = v.volume_id
  where a.hour = :hour
  order by
    a.instance_id asc, v.minutes_throttled desc nulls last, v.queue_length_mean desc nulls last, v.volume_id asc
)

select
  case
    when j.samples is null then 'silent'
    when
      j.active_controllers is not null
      and coalesce(j.bytes_in_per_second, j.log_flush_p95_ms, j.partitions) is null then 'controller'
    when
      num_nulls(
        j.log_flush_p95_ms_min, j.log_flush_p999_ms, j.log_flush_mean_ms, j.flushes, j.written_bytes_per_second
      ) > 0 then 'untold'
    when j.process_started_at > j.hour + make_interval(mins => 60 - cast(:start_minutes as integer)) then 'starting'
    when j.is_quiet then 'quiet'
    when (j.has_slowed_alone or j.has_slow_tail_alone or j.is_behind) and (j.producers_hurt or j.followers_hurt)
      then 'hurts'
    when j.has_slowed_alone then 'slowed'
    when j.has_slow_tail_alone then 'slow_tail'
    when j.is_behind then 'slower_than_peers'
    when j.usual_ms is null then 'short_history'
    when j.has_slowed or j.has_slow_tail then 'all_slower'
    else 'usual'
  end as reason,
  j.cluster,
  coalesce(j.broker_id::text, j.endpoint) as broker_id,
  j.endpoint,
  j.instance_id,
  j.log_flush_p95_ms,
  j.log_flush_p95_ms_min,
  j.usual_ms as usual_log_flush_p95_ms,
  j.usual_mad_ms,
  j.usual_kind,
  j.known_hours,
  j.produce_p99_ms,
  j.usual_produce_p99_ms,
  j.fetch_follower_p99_ms,
  j.usual_fetch_follower_p99_ms,
  j.producers_hurt,
  j.followers_hurt,
  j.log_flush_p999_ms,
  j.history_log_flush_p999_ms,
  j.peer_log_flush_p999_ms,
  j.peers,
  j.flush_ratio,
  j.written_bytes_per_second,
  j.flushes,
  m.moved,
  j.process_started_at
from alone as j
left join metrics.node_hourly as n on j.hour = n.hour and j.instance_id = n.instance_id
left join volume as v on j.instance_id = v.instance_id
-- What else isn't as usual: by a quarter of its usual, or a disk that is busy most of the time.
cross join lateral (
  select jsonb_agg(part.entry order by part.place) as moved
  from unnest(array[
    case
      when
        v.minutes_throttled >= :limit_minutes
        or v.queue_length_mean >= :waiting_operations
        or v.burst_balance_min_percent <= :empty_percent then
        jsonb_strip_nulls(jsonb_build_object(
          'what', 'volume', 'volume', v.volume_id, 'at_limit_minutes', v.minutes_throttled,
          'waiting_operations', v.queue_length_mean, 'burst_balance_percent', v.burst_balance_min_percent
        ))
    end,
    case when n.busiest_disk_ratio > 0.6 or n.iowait_ratio > 0.2 then
      jsonb_build_object('what', 'disk', 'busy_ratio', n.busiest_disk_ratio, 'iowait_ratio', n.iowait_ratio)
    end,
    case
      when
        v.read_bytes_per_second > 1.25 * v.usual_read_bytes_per_second
        and v.read_bytes_per_second >= :cold_ratio * (j.bytes_out_per_second + j.replication_bytes_out_per_second) then
        jsonb_build_object(
          'what', 'page cache', 'read_bytes_per_second', v.read_bytes_per_second,
          'usual_bytes_per_second', v.usual_read_bytes_per_second
        )
    end,
    case when j.cpu_ratio > 1.25 * j.usual_cpu_ratio then
      jsonb_build_object('what', 'CPU', 'now_ratio', j.cpu_ratio, 'usual_ratio', j.usual_cpu_ratio)
    end,
    case when j.written_bytes_per_second > 1.25 * j.usual_written then
      jsonb_build_object(
        'what', 'written', 'now_bytes_per_second', j.written_bytes_per_second,
        'usual_bytes_per_second', j.usual_written
      )
    end,
    case when j.bytes_out_per_second > 1.25 * j.usual_sent then
      jsonb_build_object(
        'what', 'sent', 'now_bytes_per_second', j.bytes_out_per_second, 'usual_bytes_per_second', j.usual_sent
      )
    end,
    case when j.fetch_follower_p99_ms > 2 * j.usual_fetch_follower_p99_ms then
      jsonb_build_object(
        'what', 'followers', 'now_ms', j.fetch_follower_p99_ms, 'usual_ms', j.usual_fetch_follower_p99_ms
      )
    end
  ]) with ordinality as part (entry, place)
  where part.entry is not null
) as m

/*
title: Broker latency regression
resource_kind: broker
owner_role: platform
maturity: stable
reads: [metrics.broker_hourly, metrics.broker_sample, metrics.node_hourly, inventory.volume_hourly, metrics.volume_hourly]
params:
  change_ratio: {default: 1.8, unit: ratio, why: "flushes of 20 ms instead of 10 ms are noticeable downstream"}
  change_floor_ms: {default: 10, unit: ms, why: "no client notices a smaller difference"}
  mads: {default: 6, unit: MAD, why: "values within six deviations of the baseline are noise"}
  history_ratio: {default: 3, unit: ratio, why: "of the broker's own 90th percentile of 14 days: no peak came close to it"}
  peer_ratio: {default: 3, unit: ratio, why: "brokers with equal load differ by less"}
  hurt_ratio: {default: 2, unit: ratio, why: "producers and followers notice when they wait twice as long"}
  calm_ratio:
    default: 0.8
    unit: ratio
    why: "with less than this share of the baseline written, followers wait for records and not for the broker"
  limit_minutes: {default: 6, unit: min, why: "a tenth of the hour at a limit of the volume or of its instance"}
  waiting_operations: {default: 8, unit: operations, why: "an SSD volume at 3,000 IOPS has a queue of three to six"}
  empty_percent: {default: 1, unit: "%", why: "without burst balance a volume falls to its baseline performance"}
  cold_ratio: {default: 0.1, unit: ratio, why: "of bytes sent: consumers at the log end read from the page cache, not from disk"}
  floor_bytes_per_second: {default: 1048576, unit: bytes/s, why: "with almost no traffic the time per byte is meaningless"}
  min_flushes: {default: 30, unit: flushes, why: "fewer are not enough for a 95th percentile"}
  least_history: {default: 168, unit: h, why: "a week contains every hour that is regularly busy"}
  start_minutes: {default: 60, unit: min, why: "after a start the broker reads its logs and catches up"}
key_metrics: [log_flush_p95_ms_min, baseline_log_flush_p95_ms, produce_p99_ms, baseline_produce_p99_ms, moved]
verdicts:
  clients_affected:
    status: firing
    severity: critical
    message: "Log flush latency (p95) of broker {{ broker_id }} is {{ log_flush_p95_ms_min }} (baseline {{ baseline_log_flush_p95_ms }}), and clients wait."
    details:
      - "{% if producers_wait %}Produce latency (p99) is {{ produce_p99_ms }}, baseline {{ baseline_produce_p99_ms }}.{% endif %}"
      - "{% if followers_wait %}Follower fetch latency (p99) is {{ fetch_follower_p99_ms }}, baseline {{ baseline_fetch_follower_p99_ms }}.{% endif %}"
    impact: "Producers and followers of this broker wait longer; followers can drop out of the ISR."
    actions: &actions
      - "Move leaders to other brokers while this broker is slow."
      - "Check what changed on this broker, its volume first: burst balance and queue length."
      - "Compare its instance and volume with those of a peer, and replace the instance if nothing explains the latency."
    commands: &commands
      - "kafka-log-dirs.sh --bootstrap-server {{ bootstrap_servers }} --describe --broker-list {{ broker_id }}"
  flush_slower:
    status: firing
    severity: warning
    message: "Log flush latency (p95) of broker {{ broker_id }} is {{ log_flush_p95_ms_min }} (baseline {{ baseline_log_flush_p95_ms }})."
    details:
      - "Produce and follower fetch latencies have not risen yet."
      - "{% if baseline_kind == 'hour_of_week' %}The baseline is that of this hour of the week.{% endif %}"
    impact: &impact "Producers and followers will wait longer if latency rises further."
    actions: *actions
    commands: *commands
  slow_tail:
    status: firing
    severity: warning
    message: "Log flush latency (p99.9) of broker {{ broker_id }} is {{ log_flush_p999_ms }} (90th percentile of 14 days: {{ history_log_flush_p999_ms }})."
    details:
      - "Flush time per byte written is {{ flush_ratio }} of its 90th percentile of 14 days."
    impact: *impact
    actions: *actions
    commands: *commands
  slower_than_peers:
    status: firing
    severity: warning
    message: "Log flush latency (p99.9) of broker {{ broker_id }} is {{ log_flush_p999_ms }}, the median of its {{ peers | counted('peer') }} {{ peer_log_flush_p999_ms }}."
    details:
      - "Peers need far less flush time for the same bytes."
    impact: *impact
    actions: *actions
    commands: *commands
  all_slower:
    status: ok
    message: "Broker {{ broker_id }} is slower ({{ log_flush_p95_ms_min }}, baseline {{ baseline_log_flush_p95_ms }}), and so {{ peers | plural('is its', 'are its') }} {{ peers | counted('peer') }}."
  at_baseline:
    status: ok
    message: "Log flush latency (p95) of broker {{ broker_id }} is {{ log_flush_p95_ms }} (baseline {{ baseline_log_flush_p95_ms }})."
  starting:
    status: unknown
    message: "Not evaluated: broker {{ broker_id }} started at {{ process_started_at }} and is catching up."
  low_traffic:
    status: unknown
    is_not_applicable: true
    message: "Not applicable: broker {{ broker_id }} writes only {{ written_bytes_per_second }} in {{ flushes | counted('flush', 'flushes') }}."
  short_history:
    status: unknown
    message: "Not evaluated: broker {{ broker_id }} has no baseline, only {{ known_hours }} of the last 4 weeks are known."
  controller: {status: unknown, is_not_applicable: true, message: "Not applicable: {{ broker_id }} is a controller and holds no logs."}
  no_response: {status: unknown, message: "Not evaluated: broker {{ broker_id }} did not respond over JMX."}
  not_reported: {status: unknown, message: "Not evaluated: broker {{ broker_id }} did not report its flush latency or its traffic."}
causes:
  broker_slows_flushes: &slower [clients_affected, flush_slower, slow_tail, slower_than_peers]
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
  Slower flushes: the 95th percentile is change_ratio times its baseline (same hour of the week), by at least
  change_floor_ms and mads deviations, in every sample of the hour. Slow tail: the 99.9th percentile and the flush time per
  byte both exceed history_ratio times their own 90th percentile of 14 days. Slower than peers: both exceed peer_ratio
  times the peers' median in the last 24 h, so that one hour of a batch does not count. Critical if the 99th percentile
  of produce requests is hurt_ratio times its baseline, or that of follower fetches while writes are at their baseline.
  Where three of four peers slowed down as well, in this hour or the one before, only a slowdown counts that is
  change_ratio times that of the peers.
runbook: |
  ## Meaning
  The broker writes its logs more slowly than it used to, or more slowly than its peers.
  ## Impact
  Producers with acks=all and followers wait. Followers can drop out of the ISR.
  ## Diagnosis
  1. Check what changed at the same time (metric `moved`). Disk: burst balance, queue length, minutes at a limit.
  2. Page cache: a reassignment or cold reads. CPU: requests, compression, TLS. Traffic: a producer that grew.
  3. If only this broker is slow: compare type, size, and IOPS of its instance and volume with a peer.
  ## Mitigation
  1. Move leaders to other brokers while this broker is slow.
  2. Remove the cause, or replace the instance if nothing explains the latency.
limitations: |
  The broker's histograms decay and cover about five minutes before each sample. A broker that was slow for all of its known
  history has a slow baseline; only its peers reveal it. A cluster in which all brokers slow down is covered by
  log_flush_slow and its absolute limits. By default Kafka leaves flushing to the operating system; brokers with few
  flushes are not evaluated.
*/
with sampled as (
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
    t.written_bytes_per_second,
    t.flushes,
    s.log_flush_p95_ms_min,
    h.hours,
    h.produce_p99_ms as past_produce_p99_ms,
    h.fetch_follower_p99_ms as past_fetch_follower_p99_ms,
    h.cpu_ratio as past_cpu_ratio,
    h.written_bytes_per_second as past_written,
    h.bytes_out_per_second as past_sent,
    h.log_flush_p999_ms as history_log_flush_p999_ms,
    h.flush_ms_per_byte as history_flush_ms_per_byte,
    h.day_log_flush_p999_ms,
    h.day_flush_ms_per_byte,
    u.median as baseline_ms,
    u.mad as baseline_mad_ms,
    u.known_hours,
    u.kind as baseline_kind,
    s.log_flush_p95_ms_min / nullif(u.median, 0) as slower_ratio,
    h.last_log_flush_p95_ms / nullif(last.median, 0) as last_slower_ratio,
    w.log_flush_mean_ms * w.log_flushes_per_second / nullif(t.written_bytes_per_second, 0) as flush_ms_per_byte,
    t.written_bytes_per_second < :floor_bytes_per_second or t.flushes < :min_flushes as is_low_traffic
  from metrics.broker_hourly as w
  cross join lateral (
    select
      w.bytes_in_per_second + coalesce(w.replication_bytes_in_per_second, 0) as written_bytes_per_second,
      w.log_flushes_per_second * w.covered_seconds as flushes
  ) as t
  inner join public.broker_history(:hour, :floor_bytes_per_second) as h using (cluster, endpoint)
  left join sampled as s using (cluster, endpoint)
  cross join lateral public.topic_baseline(w.hour, h.hours, h.log_flush_p95_ms, cast(:least_history as integer)) as u
  -- The hour before has a baseline of its own: a nightly backup is normal for its hour.
  cross join lateral public.topic_baseline(
    w.hour - interval '1 hour', h.hours, h.log_flush_p95_ms, cast(:least_history as integer)
  ) as last
  where w.hour = :hour
),

-- Controllers report no logs. A peer with missing metrics counts as not slowed down.
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
  where p.is_low_traffic is distinct from true
  and coalesce(p.bytes_in_per_second, p.log_flush_p95_ms, p.partitions) is not null
  group by b.cluster, b.endpoint
),

evaluated as (
  select
    b.*,
    c.peers,
    c.peer_log_flush_p999_ms,
    coalesce(c.slower_ratio >= :change_ratio, false) as all_slower,
    b.slower_ratio >= :change_ratio * coalesce(c.slower_ratio, 1) as is_alone,
    produce.median as baseline_produce_p99_ms,
    follower.median as baseline_fetch_follower_p99_ms,
    cpu.median as baseline_cpu_ratio,
    written.median as baseline_written,
    sent.median as baseline_sent,
    b.flush_ms_per_byte / nullif(b.history_flush_ms_per_byte, 0) as flush_ratio,
    b.slower_ratio >= :change_ratio
    and b.log_flush_p95_ms_min >= b.baseline_ms + greatest(:change_floor_ms, :mads * b.baseline_mad_ms) as has_slowed,
    b.baseline_ms is not null
    and b.log_flush_p999_ms > :history_ratio * b.history_log_flush_p999_ms
    and b.log_flush_p999_ms >= b.history_log_flush_p999_ms + :change_floor_ms
    and b.flush_ms_per_byte > :history_ratio * b.history_flush_ms_per_byte as has_slow_tail,
    c.peers >= 2
    and b.log_flush_p999_ms >= c.peer_log_flush_p999_ms + :change_floor_ms
    and b.day_log_flush_p999_ms > :peer_ratio * c.day_log_flush_p999_ms
    and b.day_flush_ms_per_byte > :peer_ratio * c.day_flush_ms_per_byte as is_behind,
    coalesce(b.produce_p99_ms >= greatest(:hurt_ratio * produce.median, produce.median + :change_floor_ms), false)
      as producers_wait,
    coalesce(
      b.fetch_follower_p99_ms >= greatest(:hurt_ratio * follower.median, follower.median + :change_floor_ms)
      and b.written_bytes_per_second >= :calm_ratio * written.median,
      false
    ) as followers_wait
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
  from evaluated
)

select
  case
    when j.samples is null then 'no_response'
    when
      j.active_controllers is not null
      and coalesce(j.bytes_in_per_second, j.log_flush_p95_ms, j.partitions) is null then 'controller'
    when j.flushes = 0 and j.written_bytes_per_second is not null then 'low_traffic'
    when
      num_nulls(
        j.log_flush_p95_ms_min, j.log_flush_p999_ms, j.log_flush_mean_ms, j.flushes, j.written_bytes_per_second
      ) > 0 then 'not_reported'
    when j.process_started_at > j.hour + make_interval(mins => 60 - cast(:start_minutes as integer)) then 'starting'
    when j.is_low_traffic then 'low_traffic'
    when (j.has_slowed_alone or j.has_slow_tail_alone or j.is_behind) and (j.producers_wait or j.followers_wait)
      then 'clients_affected'
    when j.has_slowed_alone then 'flush_slower'
    when j.has_slow_tail_alone then 'slow_tail'
    when j.is_behind then 'slower_than_peers'
    when num_nulls(j.baseline_ms, j.history_log_flush_p999_ms, j.history_flush_ms_per_byte) > 0 then 'short_history'
    when j.has_slowed or j.has_slow_tail then 'all_slower'
    else 'at_baseline'
  end as reason,
  j.cluster,
  coalesce(j.broker_id::text, j.endpoint) as broker_id,
  j.endpoint,
  j.instance_id,
  j.log_flush_p95_ms,
  j.log_flush_p95_ms_min,
  j.baseline_ms as baseline_log_flush_p95_ms,
  j.baseline_mad_ms,
  j.baseline_kind,
  j.known_hours,
  j.produce_p99_ms,
  j.baseline_produce_p99_ms,
  j.fetch_follower_p99_ms,
  j.baseline_fetch_follower_p99_ms,
  j.producers_wait,
  j.followers_wait,
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
left join public.broker_volumes(:hour) as v on j.cluster = v.cluster and j.endpoint = v.endpoint
-- What else deviates by a quarter from its baseline, or a disk that is busy most of the time.
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
        v.read_bytes_per_second > 1.25 * v.baseline_read_bytes_per_second
        and v.read_bytes_per_second >= :cold_ratio * (j.bytes_out_per_second + j.replication_bytes_out_per_second) then
        jsonb_build_object(
          'what', 'page cache', 'read_bytes_per_second', v.read_bytes_per_second,
          'baseline_bytes_per_second', v.baseline_read_bytes_per_second
        )
    end
  ] || array(
    select
      case
        when d.now > d.ratio * d.baseline
          then jsonb_build_object('what', d.what, 'now_' || d.unit, d.now, 'baseline_' || d.unit, d.baseline)
      end
    from (
      values
      (1, 'CPU', 'ratio', j.cpu_ratio, j.baseline_cpu_ratio, 1.25),
      (2, 'written', 'bytes_per_second', j.written_bytes_per_second, j.baseline_written, 1.25),
      (3, 'sent', 'bytes_per_second', j.bytes_out_per_second, j.baseline_sent, 1.25),
      (4, 'followers', 'ms', j.fetch_follower_p99_ms, j.baseline_fetch_follower_p99_ms, 2)
    ) as d (place, what, unit, now, baseline, ratio)
    order by d.place
  )) with ordinality as part (entry, place)
  where part.entry is not null
) as m

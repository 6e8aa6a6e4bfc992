/*
title: Partitions lack replicas
about: broker
owner: platform
maturity: stable
reads: [metrics.broker_hourly]
params:
  allowed: {default: 0, unit: partitions, why: "every under-replicated partition is one failure nearer to data loss"}
convinces: [under_replicated_partitions, under_min_isr_partitions, leaders]
says:
  missing:
    status: alarm
    severity: warning
    reason: "{{ under_replicated_partitions }} of the {{ leaders }} partitions that it leads lack replicas."
    cure: "Start the broker that is down; else look for a follower that can't keep up: its volume, its network, its CPU."
    commands: ["kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --describe --under-replicated-partitions"]
  read_only:
    status: alarm
    severity: critical
    reason: "{{ under_replicated_partitions }} of the {{ leaders }} partitions that it leads lack replicas; {{ under_min_isr_partitions }} are below min.insync.replicas and take no writes with acks=all."
    cure: "Start the broker that is down; else look for a follower that can't keep up: its volume, its network, its CPU."
    commands: ["kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --describe --under-min-isr-partitions"]
  tolerated: {status: ok, reason: "{{ under_replicated_partitions }} partitions lack replicas, {{ allowed }} may."}
  whole: {status: ok, reason: "No partition that it leads lacks replicas."}
  silent: {status: skip, reason: "The broker did not answer over JMX."}
  untold: {status: skip, reason: "The broker did not tell its under-replicated partitions."}
effect_of:
  broker_lacks_replicas: [missing, read_only]
open_after_hours: 1
clear_after_hours: 2
runbook: |
  1. Is a broker down? Its own endpoint then doesn't answer; start it.
  2. Otherwise look for a follower that can't keep up: its volume's queue and burst balance, its network, its CPU.
  3. A reassignment under way shows the same: wait for its end.
blind_spots: |
  It counts what lasted through the samples of a run, some seconds apart: a rolling restart at that moment is seen as an
  alarm, what came and went between two runs isn't seen at all. A broker that is down reports nothing: its peers, which
  lead the partitions, do.
*/
select
  case
    when samples is null then 'silent'
    when under_replicated_partitions is null then 'untold'
    when under_replicated_partitions > :allowed and under_min_isr_partitions > 0 then 'read_only'
    when under_replicated_partitions > :allowed then 'missing'
    when under_replicated_partitions > 0 then 'tolerated'
    else 'whole'
  end as because,
  cluster,
  coalesce(broker_id::text, endpoint) as broker_id,
  endpoint,
  instance_id,
  under_replicated_partitions,
  under_replicated_partitions_max,
  under_min_isr_partitions,
  leaders,
  samples
from metrics.broker_hourly
where hour = cast(:hour as timestamptz)

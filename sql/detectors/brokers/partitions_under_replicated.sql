/*
title: Partitions lack replicas
severity: warning
owner: platform
maturity: stable
reads: [metrics.broker_hourly]
identity: [cluster, endpoint]
params:
  allowed: {default: 0, unit: partitions, why: "every under-replicated partition is one failure nearer to data loss"}
open_after_hours: 1
clear_after_hours: 2
follows_from: [ebs_volume_starving, log_flush_slow, consumer_rogue, controllers_missing]
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
  format('%s broker %s', cluster, coalesce(broker_id::text, endpoint)) as resource,
  case
    when samples is null or under_replicated_partitions is null then 'skip'
    when under_replicated_partitions > :allowed then 'alarm'
    else 'ok'
  end as status,
  case when under_min_isr_partitions > 0 then 'critical' end as severity,
  case
    when samples is null then 'The broker did not answer over JMX.'
    when under_replicated_partitions is null then 'The broker did not tell its under-replicated partitions.'
    when under_replicated_partitions > :allowed
      then format(
        '%s of the %s partitions that it leads lack replicas%s.',
        under_replicated_partitions, coalesce(leaders::text, '?'),
        case
          when under_min_isr_partitions > 0
            then format('; %s are below min.insync.replicas and take no writes with acks=all', under_min_isr_partitions)
        end
      )
    when under_replicated_partitions > 0
      then format('%s partitions lack replicas, %s may.', under_replicated_partitions, cast(:allowed as integer))
    else 'No partition that it leads lacks replicas.'
  end as reason,
  cluster,
  endpoint,
  broker_id,
  instance_id,
  under_replicated_partitions,
  under_replicated_partitions_max,
  under_min_isr_partitions,
  leaders,
  samples,
  to_jsonb(array_remove(array[
    format('cluster:%s', cluster),
    case when instance_id is not null then format('instance:%s', instance_id) end
  ], null)) as touches
from metrics.broker_hourly
where hour = cast(:hour as timestamptz)

/*
title: Hanging transaction
resource_kind: topic
owner_role: platform
maturity: stable
reads: [metrics.partition_hourly, metrics.consumer_partition_hourly]
params:
  hours:
    default: 2
    unit: h
    why: >
      brokers abort a transaction after transaction.max.timeout.ms, 15 min by default; two hours also leave out jobs
      that set it to an hour
key_metrics: [stuck_seconds, waiting_records, hanging_partitions, blocked_groups, last_stable_offset]
verdicts:
  blocks_readers:
    status: firing
    severity: warning
    message: &message >
      The last stable offset of {{ worst_topic_partition }} has been stuck at {{ last_stable_offset.value }} for at least
      {{ stuck_seconds }} while the log-end offset advanced.
    details:
      - "A hanging transaction blocks {{ blocked_groups }}."
      - &waiting >
        {{ waiting_records }} wait on {{ hanging_partitions | counted("partition") }}.
    impact: "Consumers with isolation.level=read_committed cannot read past this offset, and compaction stops there."
    actions: &actions
      - "Find the producer ID of the transaction at offset {{ last_stable_offset.value }} with find-hanging and describe-producers."
      - "If its producer still runs, let it commit, or stop it."
      - "If its producer is gone, abort the transaction. Repeat this for each hanging partition."
      - "Prevent it: upgrade brokers and clients to Kafka 4.0 or later (KIP-890)."
    commands: &commands
      - "kafka-transactions.sh --bootstrap-server {{ bootstrap_servers }} find-hanging --topic {{ topic }} --partition {{ worst_partition }}"
      - "kafka-transactions.sh --bootstrap-server {{ bootstrap_servers }} describe-producers --topic {{ topic }} --partition {{ worst_partition }}"
      - "kafka-transactions.sh --bootstrap-server {{ bootstrap_servers }} abort --topic {{ topic }} --partition {{ worst_partition }} --start-offset {{ last_stable_offset }}"
  hanging:
    status: firing
    severity: warning
    message: *message
    details:
      - "No consumer group has its committed offset there."
      - *waiting
    impact: "Consumers with isolation.level=read_committed would not receive these records, and compaction stops there."
    actions: *actions
    commands: *commands
  idle: {status: ok, message: "A transaction on {{ topic }} has been open for {{ stuck_seconds }}, but no records follow it."}
  progressing: {status: ok, message: "Transactions on {{ open_partitions | counted('partition') }} of {{ topic }} are open and complete in time."}
  none_open: {status: ok, message: "Topic {{ topic }} has no open transaction."}
  not_reported:
    status: unknown
    message: "Not evaluated: {{ unreported_partitions | counted('partition') }} of {{ topic }} did not report their last stable or log-end offsets."
  short_history:
    status: unknown
    message: "Not evaluated: a transaction on {{ topic }} is open, but offsets are known for only {{ known_seconds }}."
causes:
  transaction_stops_consumers: [blocks_readers]
open_after_hours: 1
clear_after_hours: 1
description: |
  A transaction hangs if the last stable offset of a partition is below the log-end offset, has not changed for `hours`
  (less 15 minutes, as collection runs do not start on the second), and the log-end offset advanced meanwhile. It blocks
  a consumer group with a committed offset equal to the last stable offset. Evaluated are topics on which a transaction
  was open in the hours looked back.
runbook: |
  ## Meaning
  A transaction was never completed, so the last stable offset of the partition cannot advance.

  ## Impact
  Consumers with isolation.level=read_committed are blocked. The log cleaner does not compact beyond this offset.

  ## Diagnosis
  1. `kafka-transactions.sh find-hanging` lists open transactions that their coordinator does not know.
  2. `describe-producers` shows the producer ID, its epoch, and the time of its last write.

  ## Mitigation
  1. If the producer runs, let it commit, or stop it. Lower its transaction.timeout.ms.
  2. Otherwise abort the transaction. Its start offset is the last stable offset (KIP-664).
  3. Upgrade brokers older than 4.0: network failures leave such transactions behind (KIP-890).
limitations: |
  A transaction that starts and ends between two collection runs is not detected; it blocks no consumer for long. For a transaction
  older than the hours looked back, the duration is a lower bound. A transaction that is meant to run for hours is
  reported until it ends.
*/
-- Not materialized: that would write seven hours of all partitions to disk.
with seen as not materialized (
  select
    cluster,
    topic,
    partition,
    hour,
    offsets_at,
    last_stable_offset,
    log_end_offset
  from metrics.partition_hourly
  where
    hour between :hour - make_interval(hours => cast(:hours as integer) + 4)
    and :hour
),

-- The few partitions with an open transaction in at least one collection run.
transactional as materialized (
  select
    cluster,
    topic,
    partition
  from seen
  where last_stable_offset < log_end_offset
  group by cluster, topic, partition
),

current_offsets as (
  select
    t.cluster,
    t.topic,
    t.partition,
    s.last_stable_offset,
    s.log_end_offset,
    s.offsets_at as observed_at
  from transactional as t
  left join seen as s
    on t.cluster = s.cluster and t.topic = s.topic and t.partition = s.partition and s.hour = :hour
),

past as (
  select
    p.*,
    extract(epoch from p.observed_at - min(s.offsets_at) filter (where s.last_stable_offset = p.last_stable_offset))
      as stuck_seconds,
    extract(epoch from p.observed_at - min(s.offsets_at)) as known_seconds,
    p.log_end_offset > min(s.log_end_offset) filter (where s.last_stable_offset = p.last_stable_offset) as has_grown,
    bool_or(s.log_end_offset is null and s.last_stable_offset = p.last_stable_offset) as has_unknown_end,
    bool_or(s.last_stable_offset < p.last_stable_offset) as has_moved,
    p.last_stable_offset < p.log_end_offset as is_open
  from current_offsets as p
  inner join seen as s on p.cluster = s.cluster and p.topic = s.topic and p.partition = s.partition
  group by
    p.cluster, p.topic, p.partition, p.last_stable_offset, p.log_end_offset, p.observed_at
),

measured as (
  select
    p.*,
    current_offsets.is_stuck,
    current_offsets.is_stuck and p.has_grown as is_hanging
  from past as p
  cross join lateral (select p.is_open and p.stuck_seconds >= :hours * 3600 - 900 as is_stuck) as current_offsets
),

blocked as (
  select
    j.cluster,
    j.topic,
    string_agg(distinct c.group_id, ', ') as groups
  from measured as j
  inner join metrics.consumer_partition_hourly as c
    on j.cluster = c.cluster and j.topic = c.topic and j.partition = c.partition
    and j.last_stable_offset = c.committed_offset
  where j.is_hanging and c.hour = :hour
  group by j.cluster, j.topic
),

worst as (
  select distinct on (cluster, topic)
    cluster,
    topic,
    partition,
    last_stable_offset
  from measured
  order by cluster asc, topic asc, is_hanging desc nulls last, log_end_offset - last_stable_offset desc nulls last, partition asc
),

summary as (
  select
    cluster,
    topic,
    count(*) filter (where is_hanging) as hanging_count,
    count(*) filter (where is_open) as open,
    count(*) filter (where is_open is null or is_stuck and not is_hanging and has_unknown_end) as unreported,
    bool_or(is_stuck) as is_stuck,
    bool_or(is_open and not is_stuck and not has_moved) as is_short,
    sum(log_end_offset - last_stable_offset) filter (where is_hanging) as waiting_records,
    max(stuck_seconds) filter (where is_open) as stuck_seconds,
    min(known_seconds) as known_seconds,
    jsonb_agg(jsonb_build_object('topic', topic, 'partition', partition) order by partition) filter (where is_hanging)
      as affected
  from measured
  group by cluster, topic
)

select
  case
    when g.groups is not null then 'blocks_readers'
    when s.hanging_count > 0 then 'hanging'
    when s.unreported > 0 then 'not_reported'
    when s.is_short then 'short_history'
    when s.is_stuck then 'idle'
    when s.open > 0 then 'progressing'
    else 'none_open'
  end as reason,
  s.cluster,
  s.topic,
  s.topic || '-' || w.partition as worst_topic_partition,
  w.partition as worst_partition,
  w.last_stable_offset,
  s.stuck_seconds,
  s.waiting_records,
  s.hanging_count as hanging_partitions,
  g.groups as blocked_groups,
  s.open as open_partitions,
  s.unreported as unreported_partitions,
  s.known_seconds,
  s.affected
from summary as s
inner join worst as w on s.cluster = w.cluster and s.topic = w.topic
left join blocked as g on s.cluster = g.cluster and s.topic = g.topic

/*
title: A transaction hangs and holds readers up
resource_kind: topic
owner_role: platform
maturity: stable
reads: [metrics.partition_hourly, metrics.consumer_partition_hourly]
params:
  hours: {default: 2, unit: h, why: "brokers end a transaction after transaction.max.timeout.ms at the latest, 15 min by default; jobs that set it to an hour are left out too"}
key_metrics: [stood_seconds, waiting_records, hanging_partitions, standing_groups, last_stable_offset]
verdicts:
  holds_readers:
    status: firing
    severity: warning
    message: "The last stable offset of {{ worst_place }} has been {{ last_stable_offset.value }} for at least {{ stood_seconds }} while the log grew: a transaction hangs. {{ standing_groups }} can't read on; {{ waiting_records }} wait on {{ hanging_partitions | counted('partition') }}."
    actions:
      - &cure "Ask for the producer id behind offset {{ last_stable_offset.value }}. If find-hanging lists it and its producer is gone, abort the transaction; do it for each partition that hangs."
    commands: &commands
      - "kafka-transactions.sh --bootstrap-server {{ bootstrap_servers }} find-hanging --topic {{ topic }} --partition {{ worst_partition }}"
      - "kafka-transactions.sh --bootstrap-server {{ bootstrap_servers }} describe-producers --topic {{ topic }} --partition {{ worst_partition }}"
      - "kafka-transactions.sh --bootstrap-server {{ bootstrap_servers }} abort --topic {{ topic }} --partition {{ worst_partition }} --start-offset {{ last_stable_offset }}"
  hangs:
    status: firing
    severity: warning
    message: "The last stable offset of {{ worst_place }} has been {{ last_stable_offset.value }} for at least {{ stood_seconds }} while the log grew: a transaction hangs. No group stands there; readers of committed records would miss {{ waiting_records }}, and compaction stops there."
    actions:
      - *cure
    commands: *commands
  idle: {status: ok, message: "A transaction is open for {{ stood_seconds }}, but nothing was written behind it."}
  moves: {status: ok, message: "Transactions are open on {{ open_partitions | counted('partition') }}, and they end."}
  none_open: {status: ok, message: "No transaction is open."}
  untold: {status: unknown, message: "{{ untold_partitions }} of its partitions did not tell their last stable offset."}
  short_history: {status: unknown, message: "A transaction is open, and what was before is known of only {{ known_seconds }}."}
causes:
  transaction_stops_consumers: [holds_readers]
open_after_hours: 1
clear_after_hours: 1
description: |
  A partition hangs if its last stable offset is below the log's end, is the same as `hours` before (less a quarter of an
  hour, as runs don't begin on the second), and the log's end has grown meanwhile. A group stands there if its committed
  offset is this very offset. A topic is judged if a transaction was open on it within the last hours.
runbook: |
  1. kafka-transactions.sh find-hanging lists transactions that are open though their coordinator knows nothing of them;
     describe-producers tells producer id, epoch, and when it last wrote.
  2. A producer that lives and goes on: let it commit, or stop it; its transaction.timeout.ms is too long.
  3. Else abort with the offset at which the transaction starts, which is the last stable offset (KIP-664).
  4. Brokers before 3.6 leave such transactions behind after network trouble (KIP-890): upgrade.
limitations: |
  A transaction that begins and ends between two runs isn't seen, and needn't be. What stood for longer than the hours
  looked back is told as "at least". A transaction that is meant to take hours looks the same until it ends.
*/
-- Read once for each use: kept, seven hours of all partitions would be written to disk.
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

-- Few partitions of many: all others never had a transaction open when they were asked.
transactional as materialized (
  select
    cluster,
    topic,
    partition
  from seen
  where last_stable_offset < log_end_offset
  group by cluster, topic, partition
),

place as (
  select
    t.cluster,
    t.topic,
    t.partition,
    s.last_stable_offset,
    s.log_end_offset,
    s.offsets_at as asked_at
  from transactional as t
  left join seen as s
    on t.cluster = s.cluster and t.topic = s.topic and t.partition = s.partition and s.hour = :hour
),

past as (
  select
    p.*,
    extract(epoch from p.asked_at - min(s.offsets_at) filter (where s.last_stable_offset = p.last_stable_offset))
      as stood_seconds,
    extract(epoch from p.asked_at - min(s.offsets_at)) as known_seconds,
    p.log_end_offset > min(s.log_end_offset) filter (where s.last_stable_offset = p.last_stable_offset) as has_grown,
    bool_or(s.last_stable_offset < p.last_stable_offset) as has_moved,
    p.last_stable_offset < p.log_end_offset as is_open
  from place as p
  inner join seen as s on p.cluster = s.cluster and p.topic = s.topic and p.partition = s.partition
  group by
    p.cluster, p.topic, p.partition, p.last_stable_offset, p.log_end_offset, p.asked_at
),

judged as (
  select
    p.*,
    place.stands,
    place.stands and p.has_grown as hangs
  from past as p
  cross join lateral (select p.is_open and p.stood_seconds >= :hours * 3600 - 900 as stands) as place
),

open_finding as (
  select
    j.cluster,
    j.topic,
    string_agg(distinct c.group_id, ', ') as groups
  from judged as j
  inner join metrics.consumer_partition_hourly as c
    on j.cluster = c.cluster and j.topic = c.topic and j.partition = c.partition
    and j.last_stable_offset = c.committed_offset
  where j.hangs and c.hour = :hour
  group by j.cluster, j.topic
),

worst as (
  select distinct on (cluster, topic)
    cluster,
    topic,
    partition,
    last_stable_offset
  from judged
  order by cluster asc, topic asc, hangs desc nulls last, log_end_offset - last_stable_offset desc nulls last, partition asc
),

summary as (
  select
    cluster,
    topic,
    count(*) filter (where hangs) as hanging,
    count(*) filter (where is_open) as open,
    count(*) filter (where is_open is null) as untold,
    bool_or(stands) as stands,
    bool_or(is_open and not stands and not has_moved) as is_short,
    sum(log_end_offset - last_stable_offset) filter (where hangs) as waiting_records,
    max(stood_seconds) filter (where is_open) as stood_seconds,
    min(known_seconds) as known_seconds,
    jsonb_agg(jsonb_build_object('topic', topic, 'partition', partition) order by partition) filter (where hangs)
      as affected
  from judged
  group by cluster, topic
)

select
  case
    when g.groups is not null then 'holds_readers'
    when s.hanging > 0 then 'hangs'
    when s.untold > 0 then 'untold'
    when s.is_short then 'short_history'
    when s.stands then 'idle'
    when s.open > 0 then 'moves'
    else 'none_open'
  end as reason,
  s.cluster,
  s.topic,
  s.topic || '-' || w.partition as worst_place,
  w.partition as worst_partition,
  w.last_stable_offset,
  s.stood_seconds,
  s.waiting_records,
  s.hanging as hanging_partitions,
  g.groups as standing_groups,
  s.open as open_partitions,
  s.untold as untold_partitions,
  s.known_seconds,
  s.affected
from summary as s
inner join worst as w on s.cluster = w.cluster and s.topic = w.topic
left join open_finding as g on s.cluster = g.cluster and s.topic = g.topic

/*
title: Retention takes records before the group has read them
resource_kind: group
owner_role: platform
maturity: stable
reads: [metrics.consumer_group_hourly, metrics.consumer_partition_hourly, metrics.partition_hourly, metrics.topic_hourly, metrics.replica_sample, metrics.log_dir_hourly, inventory.topic_hourly, inventory.consumer_member_hourly]
params:
  warn_hours: {default: 12, unit: h, why: "a night"}
  near_share: {default: 0.5, unit: share of what is kept, why: "in the newer half the way to the log's start shrinks and grows with the day's traffic"}
  consumed_share: {default: 0.8, unit: share of what is kept, why: "so near the end one slow hour loses records"}
  steady_share: {default: 0.01, unit: share of what is kept, why: "of a day: a lag that stays is some minutes shorter in every other hour"}
  dead_days: {default: 7, unit: d, why: "a group without members and commits for so long is retired"}
  add_hours: {default: 72, unit: h, why: "how much retention is advised: a weekend, in which nobody adds capacity"}
key_metrics: [lost_records, left_seconds, behind_seconds, retention_seconds, members]
verdicts:
  lost:
    status: firing
    severity: critical
    message: "{{ lost_records }} of {{ lost_topics }} were deleted before the group had read them; on {{ worst_place }} the group stands at offset {{ committed_offset.value }}, and the log begins at {{ log_start_offset.value }}{% if lost_until %}: what lay between was written {% if lost_from %}from {{ lost_from }} {% endif %}until {{ lost_until }}{% endif %}.{% if members.value == 0 and not commits_alone %} Nobody runs in the group.{% endif %}"
    actions:
      - "{% if advised_retention_ms or advised_retention_bytes or retention_bytes or not settings_known %}Lengthen the retention of {{ worst_topic }} now{% if advised_retention_bytes %}, to {{ advised_retention_bytes }} a partition{% endif %}{% if advised_retention_ms %}{{ ' and' if advised_retention_bytes else ', to' }} {{ advised_retention_ms }}{% endif %}{% if extra_bytes %} ({{ 'at most ' if advised_retention_bytes else '' }}{{ extra_bytes }} more on the brokers, all replicas{% for one in (extra_by_broker or [])[:5] %}{{ ':' if loop.first else ',' }} {{ one.extra_bytes }} on {{ one.broker_id.value }}{% if one.free_bytes %}, which has {{ one.free_bytes }} free{% endif %}{% endfor %}){% endif %}, so that no more is lost; then start{% else %}As {{ worst_topic }} is set now, nothing of it is deleted: it was set otherwise, or somebody deleted its records. Start{% endif %} the group or add capacity. What is lost has to come from elsewhere."
    commands: &commands
      - "{% if advised_retention_bytes %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --entity-type topics --entity-name {{ worst_topic }} --add-config retention.bytes={{ advised_retention_bytes }}{% endif %}"
      - "{% if advised_retention_ms %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --entity-type topics --entity-name {{ worst_topic }} --add-config retention.ms={{ advised_retention_ms }}{% endif %}"
      - "{% if not advised_retention_bytes and not advised_retention_ms %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --describe --all --entity-type topics --entity-name {{ worst_topic }}{% endif %}"
      - "kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --group {{ group_id }}"
  at_risk:
    status: firing
    severity: warning
    message: "{{ worst_place }} reaches the end of what the topic keeps in {{ left_seconds }}: the group is {{ behind_seconds }} behind, {{ behind_records }}{% if is_by_size %}, and {{ retention_bytes }} a partition are kept{% elif retention_seconds %}, and {{ retention_seconds }} are kept{% endif %}.{% if members.value == 0 and not commits_alone %} Nobody runs in the group.{% endif %}"
    actions:
      - &cure "Lengthen the retention of {{ worst_topic }} by {{ add_hours }} now{% if advised_retention_bytes %}, to {{ advised_retention_bytes }} a partition{% endif %}{% if advised_retention_ms %}{{ ' and' if advised_retention_bytes else ', to' }} {{ advised_retention_ms }}{% endif %}{% if extra_bytes %} ({{ 'at most ' if advised_retention_bytes else '' }}{{ extra_bytes }} more on the brokers, all replicas{% for one in (extra_by_broker or [])[:5] %}{{ ':' if loop.first else ',' }} {{ one.extra_bytes }} on {{ one.broker_id.value }}{% if one.free_bytes %}, which has {{ one.free_bytes }} free{% endif %}{% endfor %}){% endif %}, then start the group or add capacity."
    commands: *commands
  on_the_brink:
    status: firing
    severity: warning
    message: "{{ worst_place }} is {{ behind_seconds }} behind, {{ behind_records }}, and doesn't catch up{% if is_by_size %}; only {{ retention_bytes }} a partition are kept{% elif retention_seconds %}; only {{ retention_seconds }} are kept{% endif %}.{% if members.value == 0 and not commits_alone %} Nobody runs in the group.{% endif %}"
    actions:
      - *cure
    commands: *commands
  topic_anew:
    status: firing
    severity: info
    message: "The group stands at offset {{ committed_offset.value }} of {{ worst_place }}, which ends at {{ log_end_offset.value }}: the topic was made anew, and the group reads nothing until it is reset."
    actions:
      - "Stop the group and reset it."
    commands:
      - "kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --group {{ group_id }} --topic {{ worst_topic }} --reset-offsets --to-earliest --dry-run"
  safe: {status: ok, message: "What the group has yet to read is kept for longer than {{ warn_hours }}."}
  nothing_waits: {status: ok, message: "Nothing that retention could take waits for the group."}
  renamed: {status: ok, message: "{{ heir }} reads what the group read since it ended: it was renamed."}
  retired: {status: ok, message: "The group has had no members and no commits for {{ dead_days }}: it is retired."}
  commits_unknown: {status: unknown, message: "The group's committed offsets aren't known."}
  log_unknown: {status: unknown, message: "Lag or log of {{ unknown_places | counted('partition') }} isn't known."}
  settings_unknown: {status: unknown, message: "The settings of {{ worst_topic }} aren't known: how long it keeps records can't be told."}
  short_history: {status: unknown, message: "The group is near the end of what {{ worst_topic }} keeps, and whether it catches up isn't known: that takes a day of history."}
caused_by:
  lag_nears_retention: [lost, at_risk, on_the_brink]
open_after_hours: 1
clear_after_hours: 6
description: |
  Per partition. By time: the age of the first unread record against retention.ms, and how fast that age grew over the last
  day. By size, only where retention.bytes limits the topic: the records between the group and the log's start against
  the speeds of both over the last day. At risk: over `near_share` of what is kept is behind, and at this speed the end is
  reached within `warn_hours`. On the brink: over `consumed_share` is behind, and it didn't shrink (by time: not by more than
  `steady_share` of what is kept). Lost: the committed offset is below the log's start, and it was committed or inside the
  log within the last days. Where nobody runs in the group, the age of what is unread grows by a second each second. A
  group that another one has followed on, with the same topics, waits for nothing.
  Advised is `add_hours` more, of each limit that would delete within them what the group has yet to read: of
  retention.bytes by what the partition's log takes up and how many records it got over the last day.
runbook: |
  1. Lengthen the retention first: it takes effect at once, capacity doesn't. Look at the disks' free space before.
  2. Nobody runs in the group: start it, or delete it if it is retired.
  3. The group runs and falls behind: see the ticket of consumer_group_lagging.
  4. Records are lost: fetch them from a mirror, a backup or their source. With auto.offset.reset=latest the group would
     skip what is left as well: look before it is restarted.
limitations: |
  Retention by size moves in steps of a segment. What was skipped on purpose looks lost. A group that falls out of the log
  and goes on at its start within one hour isn't seen. Records live up to one segment longer than the retention says.
  Topics that a group has left while it reads others aren't judged.
  Repartition topics, whose records Kafka Streams deletes behind itself, and compacted topics aren't judged.
*/
-- Asked once, so that only that hour is read of the history.
with before as (
  select max(hour) as hour
  from metrics.consumer_partition_hourly
  where hour <= :hour - interval '24 hours' and hour >= :hour - interval '30 hours'
),

topic as materialized (
  select
    cluster,
    topic,
    cleanup_policy is null as is_untold,
    nullif(greatest(retention_ms, 0), 0) as retention_ms,
    nullif(greatest(cast(configs -> 'retention.bytes' ->> 'value' as bigint), 0), 0) as retention_bytes
  from inventory.topic_hourly
  where hour = :hour
  and kind <> 'repartition' and coalesce(cleanup_policy, '') not like '%compact%'
),

place as (
  select
    c.cluster,
    c.group_id,
    c.topic,
    c.partition,
    c.committed_offset,
    c.lag_records,
    c.lag_seconds,
    p.log_start_offset,
    p.log_end_offset,
    t.is_untold,
    t.retention_ms,
    t.retention_bytes,
    t.retention_ms / 1000.0 as retention_seconds,
    c.committed_offset > greatest(c.log_end_offset, p.log_end_offset) as is_beyond,
    -- An empty log has nothing to lose; nor has a group that never was inside it. One offset is the mark at a
    -- transaction's end, or a client that commits the last record in place of the next.
    c.committed_offset < p.log_start_offset - 1 and p.log_end_offset > p.log_start_offset
    and (
      c.committed_at >= :hour - make_interval(days => :dead_days)
      or c_then.committed_offset >= p_then.log_start_offset
    ) as is_lost,
    g.members = 0 and c.commits = 0 as is_idle,
    extract(epoch from c.hour - c_then.hour) as passed_seconds,
    c.lag_seconds - c_then.lag_seconds as aged_seconds,
    coalesce(
      (p.log_end_offset - p_then.log_end_offset) / extract(epoch from c.hour - c_then.hour), c.arriving_per_second
    ) as arriving_per_second,
    c.committed_offset - p.log_start_offset as room_records,
    (c_then.committed_offset - p_then.log_start_offset) - (c.committed_offset - p.log_start_offset) as narrowed_records
  from metrics.consumer_partition_hourly as c
  inner join topic as t on c.cluster = t.cluster and c.topic = t.topic
  inner join metrics.consumer_group_hourly as g
    on c.hour = g.hour and c.cluster = g.cluster and c.group_id = g.group_id
  left join metrics.partition_hourly as p
    on c.hour = p.hour and c.cluster = p.cluster and c.topic = p.topic and c.partition = p.partition
  left join metrics.consumer_partition_hourly as c_then
    on c_then.hour = (select b.hour from before as b) and c.cluster = c_then.cluster and c.group_id = c_then.group_id
    and c.topic = c_then.topic and c.partition = c_then.partition
  left join metrics.partition_hourly as p_then
    on p_then.hour = (select b.hour from before as b) and c.cluster = p_then.cluster and c.topic = p_then.topic
    and c.partition = p_then.partition
  where c.hour = :hour
  and (
    c.committed_offset is null or c.lag_records is null or c.lag_records > 0 or c.committed_offset > c.log_end_offset
  )
  and (c.cluster, c.group_id, c.topic) not in (
    select cluster, group_id, topic from public.abandoned_topics(:hour)
  )
),

measured as (
  select
    *,
    lag_seconds / retention_seconds as share_by_time,
    case when retention_bytes is not null then cast(lag_records as double precision) / nullif(log_end_offset - log_start_offset, 0) end
      as share_by_size
  from place
),

timed as (
  select
    *,
    least(
      case
        when share_by_time >= :near_share and is_idle then greatest(retention_seconds - lag_seconds, 0)
        when share_by_time >= :near_share and aged_seconds > 0
          then greatest(retention_seconds - lag_seconds, 0) * passed_seconds / aged_seconds
      end,
      case
        when share_by_size >= :near_share and narrowed_records > 0
          then greatest(room_records, 0) * passed_seconds / narrowed_records
      end
    ) as left_seconds
  from measured
),

judged as (
  select
    *,
    case
      when is_beyond then 'topic_anew'
      when is_lost then 'lost'
      when
        committed_offset is null or lag_records is null or log_start_offset is null
        or (lag_seconds is null and retention_seconds is not null)
        then 'log_unknown'
      when left_seconds < :warn_hours * 3600 then 'at_risk'
      when (share_by_time >= :consumed_share and aged_seconds >= -:steady_share * retention_seconds)
        or (share_by_size >= :consumed_share and narrowed_records > 0) then 'on_the_brink'
      when is_untold then 'settings_unknown'
      when
        (share_by_time >= :near_share and aged_seconds is null) or (share_by_size >= :near_share and narrowed_records is null)
        then 'short_history'
      else 'safe'
    end as reason
  from timed
),

ranked as (
  select
    *,
    array_position(
      array['lost', 'at_risk', 'on_the_brink', 'topic_anew', 'log_unknown', 'settings_unknown', 'short_history', 'safe'],
      reason
    ) as place_rank
  from judged
),

worst as (
  select distinct on (cluster, group_id) *
  from ranked
  order by
    cluster asc, group_id asc, place_rank asc, left_seconds asc nulls last, lag_seconds desc nulls last, topic asc,
    partition asc
),

-- Where the topic lies that needs a longer retention.
holder as (
  select
    w.cluster,
    w.group_id,
    r.broker_id,
    max(cast(r.partition_bytes ->> cast(w.partition as text) as bigint)) as log_bytes,
    sum(r.size_bytes) as size_bytes,
    sum(d.usable_bytes) as free_bytes
  from worst as w
  inner join metrics.replica_sample as r
    on r.hour = :hour and w.cluster = r.cluster and w.topic = r.topic and not r.is_future
  left join metrics.log_dir_hourly as d
    on r.hour = d.hour and r.cluster = d.cluster and r.broker_id = d.broker_id and r.log_dir = d.log_dir
  where w.reason in ('lost', 'at_risk', 'on_the_brink')
  group by w.cluster, w.group_id, r.broker_id
),

held as (
  select
    cluster,
    group_id,
    max(log_bytes) as log_bytes,
    sum(size_bytes) as size_bytes
  from holder
  group by cluster, group_id
),

-- Kafka deletes by size only what leaves the log as large as retention.bytes: one that is smaller is bound by time.
needed as (
  select
    w.*,
    h.size_bytes,
    (w.retention_bytes is not null and (w.retention_seconds is null or h.log_bytes >= w.retention_bytes)) is true as is_by_size,
    case
      when w.retention_seconds is null or coalesce(h.log_bytes, w.retention_bytes) + a.added_bytes > w.retention_bytes
        then nullif(a.added_bytes, 0)
    end as added_bytes
  from worst as w
  left join held as h using (cluster, group_id)
  cross join lateral (
    select
      coalesce(h.log_bytes, w.retention_bytes) / nullif(cast(w.log_end_offset - w.log_start_offset as double precision), 0)
      * w.arriving_per_second * :add_hours * 3600 as added_bytes
  ) as a
  where w.reason in ('lost', 'at_risk', 'on_the_brink')
),

advised as (
  select
    n.cluster,
    n.group_id,
    n.size_bytes,
    n.is_by_size,
    cast(s.longer_bytes as bigint) as retention_bytes,
    case
      when s.longer_bytes is null or (n.lag_seconds + :add_hours * 3600 <= n.retention_seconds) is not true
        then n.retention_ms + :add_hours * 3600000
    end as retention_ms,
    i.replication_factor * case
      when s.longer_bytes is not null then n.added_bytes * i.partitions
      else j.bytes_in / nullif(j.covered_seconds, 0) * :add_hours * 3600
    end as extra_bytes
  from needed as n
  cross join lateral (select n.retention_bytes + n.added_bytes as longer_bytes) as s
  left join metrics.topic_hourly as j on j.hour = :hour and n.cluster = j.cluster and n.topic = j.topic
  left join inventory.topic_hourly as i on i.hour = :hour and n.cluster = i.cluster and n.topic = i.topic
),

spread as (
  select
    h.cluster,
    h.group_id,
    jsonb_agg(
      jsonb_build_object(
        'broker_id', h.broker_id, 'extra_bytes', cast(a.extra_bytes * h.size_bytes / a.size_bytes as bigint),
        'free_bytes', h.free_bytes
      )
      order by h.size_bytes desc, h.broker_id asc
    ) as brokers
  from holder as h
  inner join advised as a using (cluster, group_id)
  where a.extra_bytes is not null and a.size_bytes > 0
  group by h.cluster, h.group_id
),

summary as (
  select
    cluster,
    group_id,
    count(*) filter (where reason = 'log_unknown') as unknown_places,
    sum(log_start_offset - committed_offset) filter (where reason = 'lost') as lost_records,
    string_agg(distinct topic, ', ') filter (where reason = 'lost') as lost_topics,
    jsonb_agg(jsonb_build_object('topic', topic, 'partition', partition) order by topic, partition)
      filter (where reason in ('lost', 'at_risk', 'on_the_brink', 'topic_anew')) as affected
  from ranked
  group by cluster, group_id
),

alone as materialized (
  select *
  from public.commits_without_members(:hour)
),

-- Whether a group that may be dead has been so for so long that nobody waits for what it would read.
life as (
  select
    g.cluster,
    g.group_id,
    coalesce(max(c.committed_at) < :hour - make_interval(days => :dead_days), true)
    and bool_and(c.commits = 0) as is_silent
  from metrics.consumer_group_hourly as g
  inner join metrics.consumer_partition_hourly as c using (hour, cluster, group_id)
  where g.hour = :hour and (g.members = 0 or g.state is null or g.partitions is null)
  group by g.cluster, g.group_id
)

select
  case
    when l.cluster is null and (g.state is null or g.partitions is null) then 'commits_unknown'
    when g.members = 0 and l.is_silent then 'retired'
    when h.group_id is not null then 'renamed'
    when w.reason is null then 'nothing_waits'
    else w.reason
  end as reason,
  g.cluster,
  g.group_id,
  s.lost_records,
  w.left_seconds,
  w.lag_seconds as behind_seconds,
  w.retention_seconds,
  g.members,
  coalesce(a.is_committing, false) as commits_alone,
  s.lost_topics,
  w.lag_records as behind_records,
  w.topic as worst_topic,
  w.topic || '-' || w.partition as worst_place,
  w.committed_offset,
  w.log_start_offset,
  w.log_end_offset,
  w.retention_bytes,
  d.is_by_size,
  d.retention_ms as advised_retention_ms,
  d.retention_bytes as advised_retention_bytes,
  d.extra_bytes,
  b.brokers as extra_by_broker,
  not w.is_untold as settings_known,
  written.lost_from,
  written.lost_until,
  s.unknown_places,
  h.group_id as heir,
  s.affected
from metrics.consumer_group_hourly as g
left join life as l on g.cluster = l.cluster and g.group_id = l.group_id
left join alone as a
  on g.cluster = a.cluster and g.group_id = a.group_id
left join public.groups_renamed(:hour, cast(:dead_days as integer) * 2) as h
  on g.cluster = h.cluster and g.group_id = h.former_group
left join worst as w on g.cluster = w.cluster and g.group_id = w.group_id
left join summary as s on g.cluster = s.cluster and g.group_id = s.group_id
left join advised as d on g.cluster = d.cluster and g.group_id = d.group_id
left join spread as b on g.cluster = b.cluster and g.group_id = b.group_id
-- When the log's end passed what was lost, hour by hour: a partition is found by its hour first.
left join lateral (
  select
    min(p.hour) filter (where p.log_end_offset_first <= w.committed_offset) as lost_from,
    max(p.hour) filter (where p.log_end_offset_last >= w.log_start_offset) + interval '1 hour' as lost_until
  from metrics.partition_hourly as p
  where w.reason = 'lost' and p.cluster = w.cluster and p.topic = w.topic and p.partition = w.partition
  and p.log_end_offset_last > w.committed_offset and p.log_end_offset_first < w.log_start_offset
  and p.hour = any(
    array(select :hour - make_interval(hours => n) from generate_series(0, :dead_days * 2 * 24) as n)
  )
) as written on true
where g.hour = :hour

/*
title: Unread records expiring (data loss)
resource_kind: group
owner_role: platform
maturity: stable
reads: [metrics.consumer_group_hourly, metrics.consumer_partition_hourly, metrics.partition_hourly,
  metrics.topic_hourly, metrics.replica_sample, metrics.log_dir_hourly, inventory.topic_hourly,
  inventory.consumer_member_hourly]
params:
  warn_hours: {default: 12, unit: h, why: "a night"}
  near_share:
    default: 0.5
    unit: share of the retention
    why: "in the newer half of the log, the distance to the log start varies with the traffic of the day"
  consumed_share:
    default: 0.8
    unit: share of the retention
    why: "so close to the log start, one slow hour loses records"
  steady_share:
    default: 0.01
    unit: share of the retention
    why: "per day; a constant lag varies by some minutes from hour to hour"
  dead_days: {default: 7, unit: d, why: "a group without members and commits for so long is retired"}
  add_hours:
    default: 72
    unit: h
    why: "the additional retention to set; it covers a weekend without operators"
key_metrics: [lost_records, left_seconds, behind_seconds, retention_seconds, members]
verdicts:
  lost:
    status: firing
    severity: critical
    message: >
      {{ lost_records }} of {{ lost_topics }} were deleted before group {{ group_id }} read them.
    details:
      - &offsets >
        On {{ worst_topic_partition }}, the committed offset is {{ committed_offset.value }} and the log start offset is
        {{ log_start_offset.value }}.
      - &written_between >
        {% if lost_from %}The deleted records were written between {{ lost_from }} and {{ lost_until }}.{% endif %}
      - &written_until >
        {% if lost_until and not lost_from %}The deleted records were written before {{ lost_until }}.{% endif %}
      - &no_members >
        {% if members.value == 0 and not commits_alone %}The group has no members.{% endif %}
      - &disk_space >
        {% if extra_bytes %}The longer retention needs up to {{ extra_bytes }} more disk space (all replicas).{% endif %}
      - &disk_space_by_broker >
        {% for one in (extra_by_broker or [])[:5] %}Broker {{ one.broker_id.value }} needs {{ one.extra_bytes }} more
        (free: {{ one.free_bytes }}). {% endfor %}
    impact: "Applications of the group never process these records; the loss continues until the group catches up."
    actions:
      - &retention_bytes >
        {% if advised_retention_bytes %}Raise retention.bytes of {{ worst_topic }} to {{ advised_retention_bytes }} per
        partition now.{% endif %}
      - &retention_ms >
        {% if advised_retention_ms %}Raise retention.ms of {{ worst_topic }} to {{ advised_retention_ms }} now.{% endif %}
      - &check_settings >
        {% if not advised_retention_bytes and not advised_retention_ms %}Check the retention settings of
        {{ worst_topic }}, and extend its retention now.{% endif %}
      - &catch_up "Start the group, or add capacity to it."
      - &recover "Restore the deleted records from their source, a mirror, or a backup."
    commands: &commands
      - "kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --group {{ group_id }}"
      - "{% if not advised_retention_bytes and not advised_retention_ms %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --describe --all --entity-type topics --entity-name {{ worst_topic }}{% endif %}"
      - "{% if advised_retention_bytes %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --entity-type topics --entity-name {{ worst_topic }} --add-config retention.bytes={{ advised_retention_bytes }}{% endif %}"
      - "{% if advised_retention_ms %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --entity-type topics --entity-name {{ worst_topic }} --add-config retention.ms={{ advised_retention_ms }}{% endif %}"
  records_deleted:
    status: firing
    severity: critical
    message: >
      {{ lost_records }} of {{ lost_topics }} were deleted manually or by an application (DeleteRecords) before group
      {{ group_id }} read them.
    details:
      - *offsets
      - >
        {% if retention_seconds and lost_age_seconds %}The oldest lost record was deleted at an age of at most
        {{ lost_age_seconds }}; retention is {{ retention_seconds }}.{% endif %}
      - "{% if not retention_seconds %}The retention settings of {{ worst_topic }} do not explain the deletion.{% endif %}"
      - *written_between
      - *written_until
      - *no_members
    impact: "Applications of the group never process these records."
    actions:
      - "Find who deleted records of {{ worst_topic }}: check the authorizer log for DeleteRecords and for config changes."
      - *catch_up
      - *recover
      - "Prevent it: revoke the Delete ACL on {{ worst_topic }} from principals that do not need it."
    commands:
      - "kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --group {{ group_id }}"
      - "kafka-acls.sh --bootstrap-server {{ bootstrap_servers }} --list --topic {{ worst_topic }}"
  at_risk:
    status: firing
    severity: warning
    message: >
      Retention reaches unread records of {{ worst_topic_partition }} in {{ left_seconds }}: group {{ group_id }} is
      {{ behind_seconds }} behind.
    details: &risk_details
      - "Consumer lag on {{ worst_topic_partition }} is {{ behind_records }}."
      - "{% if is_by_size %}The topic retains {{ retention_bytes }} per partition.{% endif %}"
      - "{% if retention_seconds and not is_by_size %}The topic retains records for {{ retention_seconds }}.{% endif %}"
      - *no_members
      - *disk_space
      - *disk_space_by_broker
    impact: &loss "Retention deletes records that applications of the group have not processed."
    actions: &risk_actions
      - *retention_bytes
      - *retention_ms
      - *check_settings
      - *catch_up
    commands: *commands
  near_retention:
    status: firing
    severity: warning
    message: >
      Group {{ group_id }} is {{ behind_seconds }} behind on {{ worst_topic_partition }}, near the retention limit, and does not catch up.
    details: *risk_details
    impact: *loss
    actions: *risk_actions
    commands: *commands
  topic_recreated:
    status: firing
    severity: info
    message: >
      The committed offset {{ committed_offset.value }} of group {{ group_id }} on {{ worst_topic_partition }} is above the log-end
      offset {{ log_end_offset.value }}.
    details:
      - "The topic was recreated."
    impact: "The group reads nothing from this partition until its offsets are reset."
    actions:
      - "Stop the group, and reset its offsets on {{ worst_topic }} (--execute instead of --dry-run)."
    commands:
      - "kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --group {{ group_id }} --topic {{ worst_topic }} --reset-offsets --to-earliest --dry-run"
  safe: {status: ok, message: "Retention keeps the unread records of group {{ group_id }} for more than {{ warn_hours }}."}
  no_lag: {status: ok, message: "Group {{ group_id }} has no lag on topics with a retention limit."}
  renamed: {status: ok, message: "Group {{ successor }} replaced group {{ group_id }} and reads the same topics."}
  retired: {status: ok, message: "Group {{ group_id }} is retired: no members and no commits for {{ dead_days }}."}
  commits_unknown:
    status: unknown
    message: "Not evaluated: committed offsets of group {{ group_id }} were not reported."
  log_unknown:
    status: unknown
    message: "Not evaluated: lag, log offsets, or members of {{ unknown_places | counted('partition') }} were not reported."
  settings_unknown:
    status: unknown
    message: "Not evaluated: retention settings of topic {{ worst_topic }} were not reported."
  short_history:
    status: unknown
    message: >
      Not evaluated: group {{ group_id }} is near the retention limit of {{ worst_topic }}, but has less than a day of
      history.
caused_by:
  lag_nears_retention: [lost, at_risk, near_retention]
open_after_hours: 1
clear_after_hours: 6
description: |
  Evaluated per partition. By time: the age of the first unread record against retention.ms, and the growth of that age
  over the last day. By size, where retention.bytes is set: the records between the committed offset and the log start,
  against the speed of both over the last day.
  - At risk: more than near_share of the retention is behind, and at this speed retention reaches unread records within
    warn_hours.
  - Near retention: more than consumed_share is behind and did not shrink (by time: not by more than steady_share).
  - Lost: the committed offset is below the log start offset, and it was committed or inside the log in the last days.
  - Records deleted: as lost, but the oldest lost record was younger than retention.ms when it was deleted, and the log is
    smaller than retention.bytes. So retention did not delete it.

  In a group without members, the age of unread records grows by one second per second. A group with a successor that
  reads the same topics waits for nothing. The recommended retention adds add_hours to each limit that would delete unread
  records within that time. For retention.bytes it follows from the size of the log and the records of the last day.
runbook: |
  ## Meaning
  The group is so far behind that retention deletes, or has deleted, records that it has not read.

  ## Impact
  Applications of the group never process the deleted records.

  ## Diagnosis
  1. Check whether the group has members. If it has, see the ticket of consumer_group_lagging.
  2. If records younger than the retention are missing, check who called DeleteRecords or changed the topic's settings.
  3. Check the free disk space of the brokers before you extend the retention.

  ## Mitigation
  1. Extend the retention first: the setting takes effect at once.
  2. Start the group, or add capacity. Delete the group, with its committed offsets, if it is retired.
  3. Restore lost records from a mirror, a backup, or their source.
  4. Check auto.offset.reset before a restart: with `latest`, the group skips the remaining records as well.
limitations: |
  Retention by size deletes whole segments, and records live up to one segment longer than the retention. Records skipped
  on purpose are reported as lost. A group that loses records and continues at the log start within one hour is not
  detected. Records with old timestamps (CreateTime) may be deleted by retention soon after they were written; they are
  reported as deleted manually. So are records deleted by a retention that was shortened for a while.
  Not evaluated: topics that a group has left while it reads others, repartition topics (Kafka Streams deletes their
  records), and compacted topics.
*/
-- The newest collection a day earlier, so that only one hour of history is read.
with before as (
  select max(hour) as hour
  from metrics.consumer_partition_hourly
  where hour <= :hour - interval '24 hours' and hour >= :hour - interval '30 hours'
),

topic as materialized (
  select
    cluster,
    topic,
    cleanup_policy is null as is_unreported,
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
    t.is_unreported,
    t.retention_ms,
    t.retention_bytes,
    t.retention_ms / 1000.0 as retention_seconds,
    c.committed_offset > greatest(c.log_end_offset, p.log_end_offset) as is_beyond,
    -- An empty log loses nothing, nor does a group that never was inside the log. A difference of one offset is a
    -- transaction marker, or a client that commits the offset of the last record instead of the next.
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

classified as (
  select
    *,
    case
      when is_beyond then 'topic_recreated'
      when is_lost then 'lost'
      when
        committed_offset is null or lag_records is null or log_start_offset is null
        or (lag_seconds is null and retention_seconds is not null)
        then 'log_unknown'
      when left_seconds < :warn_hours * 3600 then 'at_risk'
      when (share_by_time >= :consumed_share and aged_seconds >= -:steady_share * retention_seconds)
        or (share_by_size >= :consumed_share and narrowed_records > 0) then 'near_retention'
      when log_end_offset is null or (share_by_time >= :near_share and is_idle is null) then 'log_unknown'
      when is_unreported then 'settings_unknown'
      when
        (share_by_time >= :near_share and aged_seconds is null) or (share_by_size >= :near_share and narrowed_records is null)
        then 'short_history'
      else 'safe'
    end as reason
  from timed
),

worst as (
  select distinct on (cluster, group_id) *
  from classified
  order by
    cluster asc, group_id asc,
    array_position(
      array['lost', 'at_risk', 'near_retention', 'topic_recreated', 'log_unknown', 'settings_unknown', 'short_history', 'safe'],
      reason
    ) asc, left_seconds asc nulls last, lag_seconds desc nulls last, topic asc,
    partition asc
),

summary as (
  select
    cluster,
    group_id,
    count(*) filter (where reason = 'log_unknown') as unknown_places,
    sum(log_start_offset - committed_offset) filter (where reason = 'lost') as lost_records,
    string_agg(distinct topic, ', ') filter (where reason = 'lost') as lost_topics,
    jsonb_agg(jsonb_build_object('topic', topic, 'partition', partition) order by topic, partition)
      filter (where reason in ('lost', 'at_risk', 'near_retention', 'topic_recreated')) as affected
  from classified
  group by cluster, group_id
),

-- Groups without members that have been inactive for dead_days.
inactive_group as (
  select
    g.cluster,
    g.group_id,
    coalesce(max(c.committed_at) < :hour - make_interval(days => :dead_days), true)
    and bool_and(c.commits = 0) as is_inactive
  from metrics.consumer_group_hourly as g
  inner join metrics.consumer_partition_hourly as c using (hour, cluster, group_id)
  where g.hour = :hour and (g.members = 0 or g.state is null or g.partitions is null)
  group by g.cluster, g.group_id
)

select
  case
    when l.cluster is null and (g.state is null or g.partitions is null) then 'commits_unknown'
    when g.members = 0 and l.is_inactive then 'retired'
    when h.group_id is not null then 'renamed'
    when w.reason is null then 'no_lag'
    when
      w.reason = 'lost' and not w.is_unreported
      and (w.retention_seconds is null or written.age_seconds < w.retention_seconds)
      and (w.retention_bytes is null or nullif(d.log_bytes, 0) < w.retention_bytes)
      then 'records_deleted'
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
  w.topic || '-' || w.partition as worst_topic_partition,
  w.committed_offset,
  w.log_start_offset,
  w.log_end_offset,
  w.retention_bytes,
  d.is_by_size,
  d.retention_ms as advised_retention_ms,
  d.retention_bytes as advised_retention_bytes,
  d.extra_bytes,
  d.brokers as extra_by_broker,
  written.written_from as lost_from,
  written.written_until as lost_until,
  written.age_seconds as lost_age_seconds,
  s.unknown_places,
  h.group_id as successor,
  s.affected
from metrics.consumer_group_hourly as g
left join inactive_group as l on g.cluster = l.cluster and g.group_id = l.group_id
left join public.commits_without_members(:hour) as a on g.cluster = a.cluster and g.group_id = a.group_id
left join public.groups_renamed(:hour, cast(:dead_days as integer) * 2) as h
  on g.cluster = h.cluster and g.group_id = h.former_group
left join worst as w on g.cluster = w.cluster and g.group_id = w.group_id
left join summary as s on g.cluster = s.cluster and g.group_id = s.group_id
left join lateral public.longer_retention(
  :hour, w.cluster, w.topic, w.partition, w.retention_ms, w.retention_bytes, w.log_end_offset - w.log_start_offset,
  w.arriving_per_second, w.lag_seconds, :add_hours
) as d on w.reason in ('lost', 'at_risk', 'near_retention')
left join lateral public.deleted_records(
  :hour, 2 * cast(:dead_days as integer), w.cluster, w.topic, w.partition, w.committed_offset, w.log_start_offset
) as written on w.reason = 'lost'
where g.hour = :hour

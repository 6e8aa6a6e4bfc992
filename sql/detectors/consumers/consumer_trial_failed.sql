/*
title: New consumer group fails its 24 h trial
resource_kind: group
owner_role: platform
maturity: stable
reads: [metrics.consumer_group_hourly, metrics.consumer_partition_hourly, metrics.partition_hourly,
  metrics.topic_hourly, metrics.broker_hourly, inventory.consumer_member_hourly, inventory.topic_hourly,
  inventory.instance_hourly]
params:
  trial_hours: {default: 24, unit: h, why: "a day of normal traffic includes its peak"}
  normal_share:
    default: 0.5
    unit: share of the baseline of bytes in
    why: "keeping up with less traffic proves nothing"
  keep_up_seconds:
    default: 300
    unit: s
    why: "a stream consumer with more than five minutes of lag does not keep up"
  keep_up_share: {default: 0.95, unit: share of the hours, why: "one bad hour per day may be a deployment"}
  grace_hours: {default: 6, unit: h, why: "to catch up from the start of the log"}
  new_days: {default: 14, unit: d, why: "two weeks of history show the behavior of a group"}
  page_cache_share:
    default: 0.5
    unit: ratio
    why: "of a broker's memory; records older than that are read from disk"
  passing:
    default: "^console-consumer-|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-"
    unit: regex
    why: "groups of interactive sessions, and generated group IDs"
key_metrics: [kept_up_hours, worst_lag_seconds, consumed_records_per_second, arrived_records_per_second, cold_bytes]
verdicts:
  failed:
    status: firing
    severity: warning
    message: >
      New group {{ group_id }} kept its lag below {{ keep_up_seconds }} in only {{ kept_up_hours.value }} of
      {{ tried_hours | counted("hour") }} with normal traffic.
    details:
      - "The highest lag was {{ worst_lag_seconds }}, in the hour of {{ worst_hour }}."
      - "{% if commit_gap_seconds %}The {{ commit_gap_seconds }} between two commits are not counted.{% endif %}"
      - >
        {% if consumed_records_per_second and arrived_records_per_second %}On average the group processed
        {{ consumed_records_per_second }}, while {{ arrived_records_per_second }} arrived.{% endif %}
      - "{% if cold_bytes %}Brokers read {{ cold_bytes }} from disk for the group.{% endif %}"
    impact: "In production, the group would fall behind and evict recent records from the page cache."
    actions:
      - "Do not promote the group to production yet."
      - "{% if commits_alone %}Speed up processing, or raise the parallelism of the job, up to the number of partitions.{% endif %}"
      - >
        {% if not commits_alone %}Speed up processing, or add members (now {{ members }}), up to the number of
        partitions.{% endif %}
      - "If the group reads old records on purpose, serve it from a separate cluster or from tiered storage."
    commands: &commands
      - "kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --group {{ group_id }}"
  never_commits:
    status: firing
    severity: warning
    message: "New group {{ group_id }} has run for {{ run_hours }} without a committed offset."
    impact: &unmeasured "The lag of the group is not measurable."
    actions:
      - "Do not promote the group to production before it commits its offsets."
    commands: *commands
  untracked:
    status: firing
    severity: warning
    message: >
      New group {{ group_id }} has no committed offset on {{ untracked_partitions }} of
      {{ assigned_partitions | counted("assigned partition") }}, such as {{ untracked_place }}, although records arrived.
    details:
      - "The group kept up in {{ kept_up_hours.value }} of {{ tried_hours | counted('hour') }} with normal traffic."
    impact: *unmeasured
    actions:
      - "Do not promote the group to production before it commits offsets on every partition that it reads."
      - "Move members that only inspect a topic to a group of their own."
    commands:
      - "kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --group {{ group_id }} --members --verbose"
  on_trial:
    status: firing
    severity: info
    message: >
      New group {{ group_id }} has been on trial since {{ trial_since }}: it kept up in {{ kept_up_hours.value }} of
      {{ tried_hours | counted("hour") }}, {{ trial_hours.value }} required.
    impact: "The capacity of the group is not proven until the trial ends."
    actions:
      - "Wait for the end of the trial before you promote the group to production."
  passed:
    status: ok
    message: "New group {{ group_id }} kept up in {{ kept_up_hours.value }} of {{ tried_hours | counted('hour') }} with normal traffic."
  renamed: {status: ok, message: "Group {{ group_id }} replaced group {{ former_group }} and reads the same topics."}
  ephemeral: {status: ok, message: "Group {{ group_id }} is temporary by its name."}
  no_members: {status: ok, message: "New group {{ group_id }} has no members."}
  recent: {status: ok, message: "New group {{ group_id }} has run for {{ run_hours }} and may be temporary."}
  established: {status: ok, message: "Group {{ group_id }} is not new."}
  commits_unknown:
    status: unknown
    message: "Not evaluated: new group {{ group_id }} has no members, and the commits or rebalances of the hour are unreadable."
  lag_unknown:
    status: unknown
    message: "Not evaluated: the lag of new group {{ group_id }} was not reported since its first hours."
  traffic_unknown:
    status: unknown
    message: "Not evaluated: the traffic of the topics of new group {{ group_id }} was not reported."
open_after_hours: 1
clear_after_hours: 2
description: |
  A group is new if its first hour within the last 2 × new_days is younger than new_days, and more than a day younger than
  the first hour of its cluster. Hours count from grace_hours on, if the group was active and its topics received at
  least normal_share of their baseline bytes (median of all hours of new_days). Of the last trial_hours of these, the
  group must keep up in keep_up_share: at the end of the hour, its lag is below keep_up_seconds plus the time between two
  commits of the last day. It must also have committed on every partition that its members have been assigned for an
  hour and that received records in the hour before. The view consumer_trials lists the verdicts.
runbook: |
  ## Meaning
  A new consumer group did not keep up with normal traffic in its first day.

  ## Impact
  In production, the group would fall behind.

  ## Diagnosis
  1. A lag at all hours: too few members, or processing is too slow for the rate of the topic.
  2. A lag at the peak only: the same, with a smaller deficit.
  3. A lag that alternates between zero and hours: the group reads in batches, or restarts.

  ## Mitigation
  1. Add members up to the number of partitions, or speed up processing.
  2. If the group reads in batches on purpose, configure an exception with other limits.
limitations: |
  Groups older than the warehouse are not evaluated. A group that was absent for longer than new_days is new again. Without
  JMX of the brokers, traffic is not known, and only missing commits fire. The bytes read from disk follow from commits and
  the current memory of the brokers; a group with a lag within the page cache counts as zero. Offsets that MirrorMaker
  copies from another cluster resemble those of a job that commits without members.
*/
with newcomer as materialized (
  select *
  from public.new_groups(:hour, cast(:new_days as integer))
),

place as materialized (
  select distinct
    cluster,
    group_id,
    topic
  from metrics.consumer_partition_hourly
  where hour = :hour
),

former as (
  select
    cluster,
    group_id,
    min(former_group) as former_group
  from public.groups_renamed(:hour, 2 * cast(:new_days as integer))
  group by cluster, group_id
),

-- Bytes in per hour of all topics that the group reads.
traffic as materialized (
  select
    n.cluster,
    n.group_id,
    j.hour,
    sum(j.bytes_in / nullif(j.covered_seconds, 0)) as bytes_in,
    sum(j.messages_in / nullif(j.covered_seconds, 0)) as arrived_per_second
  from newcomer as n
  inner join place as p on n.cluster = p.cluster and n.group_id = p.group_id
  inner join metrics.topic_hourly as j on p.cluster = j.cluster and p.topic = j.topic
  where j.hour > :hour - make_interval(days => :new_days) and j.hour <= :hour
  group by n.cluster, n.group_id, j.hour
),

baseline as (
  select
    cluster,
    group_id,
    percentile_cont(0.5) within group (order by bytes_in) as bytes_in
  from traffic
  group by cluster, group_id
),

active_hour as (
  select
    n.cluster,
    n.group_id,
    g.hour,
    g.lag_seconds_max,
    g.records_consumed,
    greatest(g.commits, g.partitions) > 0 as has_committed,
    g.hour >= n.first_hour + make_interval(hours => :grace_hours) and g.lag_seconds_max is not null as is_known,
    t.bytes_in >= :normal_share * u.bytes_in as is_normal,
    t.arrived_per_second
  from newcomer as n
  inner join metrics.consumer_group_hourly as g on n.cluster = g.cluster and n.group_id = g.group_id
  left join traffic as t on g.cluster = t.cluster and g.group_id = t.group_id and g.hour = t.hour
  left join baseline as u on g.cluster = u.cluster and g.group_id = u.group_id
  where g.hour between :hour - make_interval(days => :new_days) and :hour
  and (g.members > 0 or g.commits > 0)
),

trial_hour as (
  select
    *,
    row_number() over (partition by cluster, group_id order by hour desc) as number
  from active_hour
  where is_known and is_normal
),

late as (
  select distinct
    cluster,
    group_id
  from trial_hour
  where number <= :trial_hours and lag_seconds_max >= :keep_up_seconds
),

-- The shortest time between two commits of a partition. Partitions with little traffic have longer ones; an hour without
-- a collection run affects one.
rhythm as (
  select
    l.cluster,
    l.group_id,
    min(r.gap_seconds) as gap_seconds
  from late as l
  cross join lateral public.commit_gaps(l.cluster, l.group_id, :hour, 0.5) as r
  group by l.cluster, l.group_id
),

trial as (
  select
    cluster,
    group_id,
    count(*) as tried,
    count(*) filter (where c.lag_seconds_max < :keep_up_seconds + coalesce(r.gap_seconds, 0)) as kept_up,
    max(c.lag_seconds_max) as worst_lag_seconds,
    (array_agg(c.hour order by c.lag_seconds_max desc, c.hour asc))[1] as worst_hour,
    avg(c.records_consumed) / 3600 as consumed_per_second,
    avg(c.arrived_per_second) as arrived_per_second,
    max(r.gap_seconds) as gap_seconds
  from trial_hour as c
  left join rhythm as r using (cluster, group_id)
  where c.number <= :trial_hours
  group by cluster, group_id
),

-- What it read in these hours that the page cache no longer held: nothing, if it was never so far beyond_page_cache.
beyond_page_cache as (
  select
    c.*,
    p.seconds as page_cache_seconds,
    bool_or(c.lag_seconds_max > p.seconds) over (partition by cluster, group_id) as is_beyond
  from late
  inner join trial_hour as c using (cluster, group_id)
  inner join public.page_cache(
    :hour - make_interval(days => :new_days), :hour, :page_cache_share
  ) as p using (cluster, hour)
  where c.number <= :trial_hours
),

disk as (
  select
    b.cluster,
    b.group_id,
    case
      when not b.is_beyond then 0
      when bool_and(r.cold_bytes is not null) then sum(r.cold_bytes)
    end as cold_bytes
  from beyond_page_cache as b
  left join lateral public.group_cold_reads(b.cluster, b.group_id, b.hour, b.page_cache_seconds) as r on b.is_beyond
  group by b.cluster, b.group_id, b.is_beyond
),

active_summary as (
  select
    cluster,
    group_id,
    count(*) as hours,
    bool_or(has_committed) as has_committed,
    bool_or(is_known) as is_known,
    bool_or(is_normal is not null) as has_traffic
  from active_hour
  group by cluster, group_id
)

select
  case
    when n.cluster is null then 'established'
    when :passing <> '' and g.group_id ~ :passing then 'ephemeral'
    when f.former_group is not null then 'renamed'
    when g.members = 0 and a.is_committing is not true and (g.commits is null or g.commits > 0 and g.rebalances is null)
      then 'commits_unknown'
    when g.members = 0 and a.is_committing is not true then 'no_members'
    when coalesce(r.hours, 0) < 3 then 'recent'
    when not r.has_committed and r.hours >= :trial_hours then 'never_commits'
    when t.tried >= :trial_hours and t.kept_up < :keep_up_share * t.tried then 'failed'
    when t.tried >= :trial_hours and k.untracked > 0 then 'untracked'
    when t.tried >= :trial_hours then 'passed'
    when r.hours <= :grace_hours or not r.has_committed then 'on_trial'
    when not r.is_known then 'lag_unknown'
    when not r.has_traffic then 'traffic_unknown'
    else 'on_trial'
  end as reason,
  g.cluster,
  g.group_id,
  n.first_hour as trial_since,
  coalesce(r.hours, 0) as run_hours,
  coalesce(t.tried, 0) as tried_hours,
  coalesce(t.kept_up, 0) as kept_up_hours,
  t.worst_lag_seconds,
  t.worst_hour,
  t.gap_seconds as commit_gap_seconds,
  t.consumed_per_second as consumed_records_per_second,
  t.arrived_per_second as arrived_records_per_second,
  d.cold_bytes,
  k.assigned as assigned_partitions,
  k.untracked as untracked_partitions,
  k.untracked_place,
  g.members,
  coalesce(a.is_committing, false) as commits_alone,
  f.former_group
from metrics.consumer_group_hourly as g
left join newcomer as n on g.cluster = n.cluster and g.group_id = n.group_id
left join active_summary as r on g.cluster = r.cluster and g.group_id = r.group_id
left join trial as t on g.cluster = t.cluster and g.group_id = t.group_id
left join disk as d on g.cluster = d.cluster and g.group_id = d.group_id
left join lateral public.assignment_coverage(n.cluster, n.group_id, :hour) as k on true
left join former as f on g.cluster = f.cluster and g.group_id = f.group_id
left join public.commits_without_members(:hour) as a on g.cluster = a.cluster and g.group_id = a.group_id
where g.hour = :hour

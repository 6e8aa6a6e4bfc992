/*
title: New consumer group doesn't keep up
resource_kind: group
owner_role: platform
maturity: stable
reads: [metrics.consumer_group_hourly, metrics.consumer_partition_hourly, metrics.partition_hourly, metrics.topic_hourly, metrics.broker_hourly, inventory.consumer_member_hourly, inventory.topic_hourly, inventory.instance_hourly]
params:
  trial_hours: {default: 24, unit: h, why: "a day of normal traffic has its peak in it"}
  normal_share: {default: 0.5, unit: share of the usual bytes in, why: "who keeps up with less hasn't been tried"}
  keep_up_seconds: {default: 300, unit: s, why: "who reads a stream and is later than five minutes doesn't keep up"}
  keep_up_share: {default: 0.95, unit: share of the hours, why: "one bad hour of a day may be a deploy"}
  grace_hours: {default: 6, unit: h, why: "to catch up from the start of the log"}
  new_days: {default: 14, unit: d, why: "who is known for two weeks has shown what it does"}
  page_cache_share: {default: 0.5, unit: ratio, why: "of a broker's memory; a lag beyond it is read from the disk"}
  passing: {default: "^console-consumer-|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-", unit: regex, why: "groups of people looking, and names that are generated anew each time"}
key_metrics: [kept_up_hours, worst_lag_seconds, consumed_records_per_second, arrived_records_per_second, cold_bytes]
verdicts:
  failed:
    status: firing
    severity: warning
    message: "In {{ kept_up_hours.value }} of its last {{ tried_hours | counted('hour') }} with normal traffic the new group was less than {{ keep_up_seconds }} behind{% if commit_gap_seconds %}, the {{ commit_gap_seconds }} between two commits not counted{% endif %}; its worst hour was {{ worst_hour }} with {{ worst_lag_seconds }}.{% if consumed_records_per_second and arrived_records_per_second %} On the mean of these hours it read {{ consumed_records_per_second }}; {{ arrived_records_per_second }} came in.{% endif %}{% if cold_bytes %} {{ cold_bytes }} of that memory no longer held: the brokers' disks were read for it.{% endif %}"
    actions:
      - "Don't let it into production yet. Speed its processing up or {% if commits_alone %}raise the parallelism of the job that commits for the group{% else %}add members (now {{ members }}){% endif %} up to the number of partitions; if it is meant to read old data, give it a cluster or a tier of its own."
    commands: &commands ["kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --group {{ group_id }}"]
  never_commits:
    status: firing
    severity: warning
    message: "The new group has run for {{ run_hours }} and has committed nothing: whether it keeps up can't be told."
    actions:
      - "Don't let it into production before it commits its offsets."
    commands: *commands
  untracked:
    status: firing
    severity: warning
    message: "The new group kept up in {{ kept_up_hours.value }} of {{ tried_hours | counted('hour') }} with normal traffic, but on {{ untracked_partitions }} of the {{ assigned_partitions | counted('partition') }} that its members have, as of {{ untracked_place }}, it has committed nothing though records came: whether it keeps up there can't be told."
    actions:
      - "Don't let it into production before it commits its offsets on every partition that it reads: a member that only looks at a topic should be in a group of its own."
    commands: ["kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --group {{ group_id }} --members --verbose"]
  on_trial:
    status: firing
    severity: info
    message: "The group is new: on trial since {{ trial_since }}, {{ kept_up_hours.value }} of {{ tried_hours | counted('hour') }} kept up so far; {{ trial_hours }} with normal traffic are asked for."
  passed: {status: ok, message: "The new group kept up in {{ kept_up_hours.value }} of {{ tried_hours | counted('hour') }} with normal traffic."}
  renamed: {status: ok, message: "The group reads what {{ former_group }} read that ended when it began: it was renamed."}
  passing_by: {status: ok, message: "The group's name says that it doesn't stay."}
  nobody: {status: ok, message: "The group is new, and nobody runs in it."}
  young: {status: ok, message: "The group has run for {{ run_hours }}; it may not stay."}
  settled: {status: ok, message: "The group is not new."}
  uncounted: {status: unknown, message: "Nobody runs in the new group; whether a job commits for it isn't known, as the hour's commits couldn't be read."}
  lag_unknown: {status: unknown, message: "The group is new, and its lag isn't known for any hour since its first ones."}
  traffic_unknown: {status: unknown, message: "The group is new, and the traffic of its topics isn't known."}
open_after_hours: 1
clear_after_hours: 2
description: |
  New is a group whose first hour in the last 2 × `new_days` is younger than `new_days` and more than a day younger than
  its cluster's first hour there. Hours count from the first after `grace_hours` on, if somebody ran in the group and its
  topics got at least `normal_share` of their usual bytes (median of all hours of `new_days`). Of the last `trial_hours` of these it
  has to keep up in `keep_up_share`: at its end it is less than keep_up_seconds behind, beside what lies between two commits
  of the last day, as who commits seldom is behind by that. And it has committed on every partition that its members have had
  for an hour, and that got records in the hour before. The verdicts stand in the view consumer_trials.
runbook: |
  1. Falls behind all the time: too few members, or too slow for the topic's rate.
  2. Falls behind at the peak only: the same, with less to add.
  3. Jumps between zero and hours: it reads in batches, or restarts. If it is meant to, make an exception with other limits.
limitations: |
  Groups older than the warehouse pass untested. A group that was away for longer than new_days is new again. Without
  JMX of the brokers the traffic of topics isn't known, and nothing is judged but whether it commits.
  What it read from disks is what its commits tell, by the memory that the brokers have now; who was never behind by more than
  that memory holds is taken to have read nothing.
  Offsets that MirrorMaker copies from another cluster look like those of a job that commits without members.
*/
with life as materialized (
  select
    cluster,
    group_id,
    min(hour) as first_hour
  from metrics.consumer_group_hourly
  where hour > :hour - make_interval(days => 2 * cast(:new_days as integer))
  and hour <= :hour
  group by cluster, group_id
),

cluster_life as (
  select
    cluster,
    min(first_hour) as first_hour
  from life
  group by cluster
),

newcomer as materialized (
  select
    l.cluster,
    l.group_id,
    l.first_hour
  from life as l
  inner join cluster_life as c on l.cluster = c.cluster
  where l.first_hour > :hour - make_interval(days => :new_days)
  and l.first_hour > c.first_hour + interval '24 hours'
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

-- What came in by the hour on all topics that the group reads.
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

usual as (
  select
    cluster,
    group_id,
    percentile_cont(0.5) within group (order by bytes_in) as bytes_in
  from traffic
  group by cluster, group_id
),

lived as (
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
  left join usual as u on g.cluster = u.cluster and g.group_id = u.group_id
  where g.hour between :hour - make_interval(days => :new_days) and :hour
  and (g.members > 0 or g.commits > 0)
),

counted as (
  select
    *,
    row_number() over (partition by cluster, group_id order by hour desc) as number
  from lived
  where is_known and is_normal
),

late as (
  select distinct
    cluster,
    group_id
  from counted
  where number <= :trial_hours and lag_seconds_max >= :keep_up_seconds
),

-- What lies between two commits of the place that has the least, as in most hours: within the hour, or, of who commits
-- seldom, since the commit before. Places to which little comes have more; an hour that wasn't gathered spoils one.
rhythm as (
  select
    cluster,
    group_id,
    min(gap_seconds) as gap_seconds
  from (
    select
      cluster,
      group_id,
      greatest(
        percentile_cont(0.5) within group (order by commit_gap_p95_seconds),
        percentile_cont(0.5) within group (
          order by extract(epoch from committed_at - committed_before)::double precision / commits
        )
      ) as gap_seconds
    from (
      select
        p.*,
        lag(p.committed_at) over (partition by cluster, group_id, p.topic, p.partition order by p.hour) as committed_before
      from late
      inner join metrics.consumer_partition_hourly as p using (cluster, group_id)
      where p.hour > :hour - interval '24 hours' and p.hour <= :hour
      and p.commits > 0
    ) as hours
    group by cluster, group_id, topic, partition
  ) as place
  group by cluster, group_id
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
  from counted as c
  left join rhythm as r using (cluster, group_id)
  where c.number <= :trial_hours
  group by cluster, group_id
),

-- What it read in these hours that the page cache no longer held: nothing, if it was never so far behind.
behind as (
  select
    c.*,
    p.seconds as page_cache_seconds,
    bool_or(c.lag_seconds_max > p.seconds) over (partition by cluster, group_id) as is_beyond
  from late
  inner join counted as c using (cluster, group_id)
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
  from behind as b
  left join lateral public.group_cold_reads(b.cluster, b.group_id, b.hour, b.page_cache_seconds) as r on b.is_beyond
  group by b.cluster, b.group_id, b.is_beyond
),

run as (
  select
    cluster,
    group_id,
    count(*) as hours,
    bool_or(has_committed) as has_committed,
    bool_or(is_known) as is_known,
    bool_or(is_normal is not null) as has_traffic
  from lived
  group by cluster, group_id
),

assigned as materialized (
  select distinct
    m.hour,
    n.cluster,
    n.group_id,
    a.topic,
    p.partition::integer as partition
  from newcomer as n
  inner join inventory.consumer_member_hourly as m on n.cluster = m.cluster and n.group_id = m.group_id
  cross join lateral jsonb_each(m.assignment) as a (topic, partitions)
  cross join lateral jsonb_array_elements_text(a.partitions) as p (partition)
  where m.hour in (:hour, :hour - interval '1 hour')
),

-- A row of a partition is there from the first commit on.
tracked as (
  select
    a.cluster,
    a.group_id,
    count(*) as assigned,
    count(*) filter (where s.is_untracked) as untracked,
    min(a.topic || '-' || a.partition) filter (where s.is_untracked) as untracked_place
  from assigned as a
  left join assigned as b
    on a.hour > b.hour and a.cluster = b.cluster and a.group_id = b.group_id and a.topic = b.topic and a.partition = b.partition
  left join metrics.partition_hourly as l
    on b.hour = l.hour and b.cluster = l.cluster and b.topic = l.topic and b.partition = l.partition
  left join metrics.consumer_partition_hourly as c
    on a.hour = c.hour and a.cluster = c.cluster and a.group_id = c.group_id and a.topic = c.topic and a.partition = c.partition
  cross join lateral (
    select c.cluster is null and l.log_end_offset_last > l.log_end_offset_first as is_untracked
  ) as s
  where a.hour = :hour
  group by a.cluster, a.group_id
),

alone as materialized (
  select *
  from public.commits_without_members(:hour)
),

verdict as (
  select
    g.cluster,
    g.group_id,
    g.members,
    g.commits,
    coalesce(a.is_committing, false) as commits_alone,
    n.cluster is not null as is_new,
    f.former_group,
    coalesce(r.hours, 0) as run_hours,
    n.first_hour,
    r.has_committed,
    r.is_known,
    r.has_traffic,
    coalesce(t.tried, 0) as tried,
    coalesce(t.kept_up, 0) as kept_up,
    t.worst_lag_seconds,
    t.worst_hour,
    t.consumed_per_second,
    t.arrived_per_second,
    t.gap_seconds,
    d.cold_bytes,
    k.assigned,
    k.untracked,
    k.untracked_place
  from metrics.consumer_group_hourly as g
  left join newcomer as n on g.cluster = n.cluster and g.group_id = n.group_id
  left join run as r on g.cluster = r.cluster and g.group_id = r.group_id
  left join trial as t on g.cluster = t.cluster and g.group_id = t.group_id
  left join disk as d on g.cluster = d.cluster and g.group_id = d.group_id
  left join tracked as k on g.cluster = k.cluster and g.group_id = k.group_id
  left join former as f on g.cluster = f.cluster and g.group_id = f.group_id
  left join alone as a
    on g.cluster = a.cluster and g.group_id = a.group_id
  where g.hour = :hour
)

select
  case
    when not is_new then 'settled'
    when :passing <> '' and group_id ~ :passing then 'passing_by'
    when former_group is not null then 'renamed'
    when members = 0 and not commits_alone and commits is null then 'uncounted'
    when members = 0 and not commits_alone then 'nobody'
    when run_hours < 3 then 'young'
    when not has_committed and run_hours >= :trial_hours then 'never_commits'
    when tried >= :trial_hours and kept_up < :keep_up_share * tried then 'failed'
    when tried >= :trial_hours and untracked > 0 then 'untracked'
    when tried >= :trial_hours then 'passed'
    when run_hours <= :grace_hours or not has_committed then 'on_trial'
    when not is_known then 'lag_unknown'
    when not has_traffic then 'traffic_unknown'
    else 'on_trial'
  end as reason,
  cluster,
  group_id,
  first_hour as trial_since,
  run_hours,
  tried as tried_hours,
  kept_up as kept_up_hours,
  worst_lag_seconds,
  worst_hour,
  gap_seconds as commit_gap_seconds,
  consumed_per_second as consumed_records_per_second,
  arrived_per_second as arrived_records_per_second,
  cold_bytes,
  assigned as assigned_partitions,
  untracked as untracked_partitions,
  untracked_place,
  members,
  commits_alone,
  former_group
from verdict

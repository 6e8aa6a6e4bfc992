/*
title: A consumer that nobody knows reads cold data
severity: critical
owner: platform
maturity: stable
reads:
  - metrics.volume_sample
  - metrics.volume_hourly
  - metrics.broker_hourly
  - metrics.topic_hourly
  - metrics.partition_hourly
  - metrics.consumer_partition_hourly
  - metrics.consumer_group_hourly
  - metrics.broker_sample
  - metrics.jvm_app_hourly
  - inventory.volume_hourly
  - inventory.instance_hourly
  - inventory.topic_hourly
  - inventory.consumer_member_hourly
identity: [cluster]
params:
  spike_mads: {default: 6, unit: MAD, why: "six deviations above the median of the same hour of the week isn't noise"}
  floor_bytes_per_second: {default: 10485760, unit: bytes/s, why: "10 MiB/s of a cluster's disks; less slows nobody"}
  sustained_minutes: {default: 2, unit: minutes, why: "one minute alone is a restart or a segment roll"}
  rogue_share: {default: 0.2, unit: share, why: "of the excess; less may be read-ahead, or bytes counted a minute apart"}
  page_cache_share: {default: 0.5, unit: share, why: "of a broker's memory; a lag beyond it is read from the disk"}
  usual_days: {default: 7, unit: days, why: "what a topic is usually sent shows over a week, as readers that never commit"}
  usual_hours: {default: 24, unit: hours, why: "with less than a day known nothing is called usual"}
  settled_hours: {default: 6, unit: hours, why: "so long after a rebalance or a start stores may still be restored"}
rule: |
  Consumers at the end of a log are served from the page cache; a disk is read when somebody wants what isn't there any
  more. First: do the brokers' volumes, one or all of a cluster together, read more than usual in the same hour of the
  week (median and deviations of four weeks; of all hours while there are fewer than three), by spike_mads deviations and
  by floor_bytes_per_second, for sustained_minutes?

  Then two amounts, over the time that JMX counted. Unexplained: what the disks read beyond the usual or the known, which
  is groups that lag beyond the page cache or work off an older backlog, restores of state stores, and replicas that
  catch up. Unaccounted: what topics sent beyond the progress that groups committed, in bytes, and beyond what readers
  without commits are always sent. A rogue's bytes are both, so the lesser counts: above rogue_share of the excess it is
  an alarm.

  What a group read is told by its commits; of one that reads from disk a step more than those is taken to be its own, as
  much again where it jumped back. A group that only lags, and reads nothing, explains nothing.

  The page cache holds what was written last: page_cache_share of the brokers' memory, divided by what is written per
  second, is how old a record in it can be.
open_after_hours: 1
clear_after_hours: 2
runbook: |
  1. See which topics' bytes nobody accounts for, and ask their owners who replays them.
  2. Find the client: the fetch rates below, where quotas make the brokers count them (a generous default quota is enough,
     kafka-configs --alter --add-config consumer_byte_rate=1000000000 --entity-type clients --entity-default);
     kafka-consumer-groups --describe --members for groups without commits; on the brokers, the connections with the
     largest send rate (ss -ti), or the request log for Fetch on that topic.
  3. Slow it down: kafka-configs --alter --add-config consumer_byte_rate=… --entity-type clients --entity-name <client>.
     A quota holds for each broker by itself.
  4. Serve replays and backfills from another cluster, or from tiered storage.
blind_spots: |
  Kafka doesn't say who is connected without committing: topics and amounts are known, the client only where quotas make
  brokers count by client, and while it still reads when JMX is asked. A reader of data that is still in the page cache
  isn't seen; nor one that began so long ago that it is usual, or that reads less beside a nightly batch than that varies;
  nor, in a cluster's first weeks, one that reads less than groups which always lag.
  A changelog's bytes beyond the usual are taken for a restore unless its application has long been settled. A known group
  far behind that has members and hasn't committed is taken for the reader of its topics, and so is one that jumped back
  if the disks were read for no longer than it takes to commit twice; else it may have read twice what it committed.
  Internal topics don't count. Rates of JMX and commits are compared over the time that JMX covers.
*/
with broker as (
  select
    cluster,
    broker_id,
    endpoint,
    instance_id,
    samples,
    replication_bytes_out_per_second,
    under_replicated_partitions_max
  from metrics.broker_hourly
  where hour = cast(:hour as timestamptz)
),

broker_volume as (
  select
    b.cluster,
    b.broker_id,
    v.account,
    v.region,
    v.volume_id,
    v.instance_id,
    m.read_baseline_bytes_per_second as baseline,
    m.read_baseline_hours,
    m.read_baseline_kind,
    :spike_mads * greatest(m.read_baseline_mad_bytes_per_second, 0.1 * m.read_baseline_bytes_per_second) as margin
  from broker as b
  inner join inventory.volume_hourly as v on b.instance_id = v.instance_id and v.hour = cast(:hour as timestamptz)
  left join metrics.volume_hourly as m
    on v.hour = m.hour and v.account = m.account and v.region = m.region and v.volume_id = m.volume_id
),

volume_minute as (
  select
    v.*,
    s.at,
    s.period_seconds,
    s.read_bytes / s.period_seconds as rate
  from broker_volume as v
  inner join metrics.volume_sample as s
    on v.account = s.account and v.region = s.region and v.volume_id = s.volume_id
  where s.at >= cast(:hour as timestamptz) and s.at < cast(:hour as timestamptz) + interval '1 hour'
  and s.read_bytes is not null
),

-- Minutes in which one volume, or all of the cluster together, read far more than usual.
loud_minute as (
  select
    cluster,
    at,
    max(period_seconds) as period_seconds
  from volume_minute
  group by cluster, at
  having
    bool_or(rate - baseline > greatest(margin, :floor_bytes_per_second))
    or sum(rate - baseline) > greatest(sqrt(sum(margin * margin)), :floor_bytes_per_second)
),

loud_cluster as (
  select
    cluster,
    sum(period_seconds) / 60.0 as minutes_above,
    min(at) as since,
    max(at + make_interval(secs => period_seconds)) as until
  from loud_minute
  group by cluster
  having sum(period_seconds) / 60.0 >= :sustained_minutes
),

volume_reads as (
  select
    v.cluster,
    v.broker_id,
    v.volume_id,
    v.instance_id,
    v.baseline,
    v.read_baseline_hours,
    v.read_baseline_kind,
    count(m.at) as minutes_known,
    coalesce(sum(m.period_seconds) filter (where l.at is not null), 0) / 60.0 as minutes_above,
    min(m.at) filter (where l.at is not null) as since,
    max(m.rate) as highest_rate,
    avg(m.rate) filter (where l.at is not null) as rate_above
  from broker_volume as v
  left join volume_minute as m on v.cluster = m.cluster and v.volume_id = m.volume_id
  left join loud_minute as l on m.cluster = l.cluster and m.at = l.at and m.rate - m.baseline > m.margin
  group by
    v.cluster, v.broker_id, v.volume_id, v.instance_id, v.baseline, v.read_baseline_hours, v.read_baseline_kind
),

spike as (
  select r.*
  from volume_reads as r
  inner join loud_cluster using (cluster)
  where r.minutes_above > 0
),

known_cluster as (
  select cluster from broker
  union
  select cluster from inventory.topic_hourly where hour = cast(:hour as timestamptz)
),

cluster_reads as (
  select
    k.cluster,
    count(distinct b.endpoint) as brokers,
    count(distinct b.endpoint) filter (where b.instance_id is null) as brokers_unplaced,
    count(distinct b.endpoint) filter (where b.samples is null) as brokers_silent,
    sum(b.replication_bytes_out_per_second) as replicated_per_second,
    max(b.under_replicated_partitions_max) as under_replicated_partitions,
    (select count(*) from volume_reads as r where r.cluster = k.cluster) as volumes,
    (select count(*) from volume_reads as r where r.cluster = k.cluster and (r.minutes_known = 0 or r.baseline is null))
      as volumes_unknown,
    (select count(*) from spike as s where s.cluster = k.cluster) as volumes_above,
    (select max(r.highest_rate) from volume_reads as r where r.cluster = k.cluster) as highest_rate,
    (select sum(s.rate_above) from spike as s where s.cluster = k.cluster) as read_per_second,
    (select sum(s.baseline) from spike as s where s.cluster = k.cluster) as baseline_per_second,
    (
      select min(s.read_baseline_hours) from spike as s
      where s.cluster = k.cluster and s.read_baseline_kind = 'all_hours'
    ) as baseline_hours,
    (select l.since from loud_cluster as l where l.cluster = k.cluster) as since,
    (select l.until from loud_cluster as l where l.cluster = k.cluster) as until,
    (select l.minutes_above from loud_cluster as l where l.cluster = k.cluster) as minutes_above,
    (
      select :page_cache_share * sum(i.memory_bytes)
      from inventory.instance_hourly as i
      where i.hour = cast(:hour as timestamptz)
      and i.instance_id in (select o.instance_id from broker as o where o.cluster = k.cluster)
    ) as page_cache_bytes
  from known_cluster as k
  left join broker as b using (cluster)
  group by k.cluster
),

-- The time that JMX counted: all bytes below are those of this time.
counted as (
  select
    cluster,
    min(counted_from) as counted_from,
    max(counted_to) as counted_to,
    max(covered_seconds) as seconds
  from metrics.topic_hourly
  where hour = cast(:hour as timestamptz) and bytes_out is not null and covered_seconds > 0
  group by cluster
),

overlap as (
  select
    m.cluster,
    m.volume_id,
    m.rate,
    case when m.rate - m.baseline > m.margin then m.rate - m.baseline else 0 end as excess_rate,
    extract(
      epoch from least(m.at + make_interval(secs => m.period_seconds), c.counted_to) - greatest(m.at, c.counted_from)
    ) as seconds
  from volume_minute as m
  inner join spike as s on m.cluster = s.cluster and m.volume_id = s.volume_id
  inner join counted as c
    on m.cluster = c.cluster
    and m.at < c.counted_to
    and m.at + make_interval(secs => m.period_seconds) > c.counted_from
),

-- What the disks read above their baseline in that time. CloudWatch's minutes come late: where none of them lies in it,
-- the rate of the spike stands for it.
excess as (
  select
    s.cluster,
    sum(coalesce(o.excess_rate, s.rate_above - s.baseline)) * max(c.seconds) as bytes,
    sum(coalesce(o.rate, s.rate_above)) * max(c.seconds) as read_bytes,
    sum(s.baseline) * max(c.seconds) as usual_bytes,
    max(c.seconds) as seconds,
    min(c.counted_from) as counted_from
  from spike as s
  inner join counted as c using (cluster)
  left join (
    select
      cluster,
      volume_id,
      sum(rate * seconds) / nullif(sum(seconds), 0) as rate,
      sum(excess_rate * seconds) / nullif(sum(seconds), 0) as excess_rate
    from overlap
    group by cluster, volume_id
  ) as o using (cluster, volume_id)
  group by s.cluster
),

-- What readers that never commit are sent all the time, for each byte that comes in: the least quarter of the hours.
usual_reading as (
  select
    cluster,
    topic,
    percentile_cont(0.25) within group (order by bytes_out / bytes_in) as sent_per_byte
  from metrics.topic_hourly
  where hour >= cast(:hour as timestamptz) - make_interval(days => :usual_days) and hour < cast(:hour as timestamptz)
  and cluster in (select loud_cluster.cluster from loud_cluster)
  and bytes_in > 0 and bytes_out is not null
  group by cluster, topic
  having count(*) >= :usual_hours
),

-- Applications whose stores aren't being restored: no rebalance and no start for hours.
settled_application as (
  select
    g.cluster,
    g.group_id as application_id
  from metrics.consumer_group_hourly as g
  where g.hour > cast(:hour as timestamptz) - make_interval(hours => :settled_hours)
  and g.hour <= cast(:hour as timestamptz)
  and not exists (
    select 1 from metrics.jvm_app_hourly as a
    where a.hour = cast(:hour as timestamptz) and a.cluster = g.cluster and a.application_id = g.group_id
    and a.process_started_at > cast(:hour as timestamptz) - make_interval(hours => :settled_hours)
  )
  group by g.cluster, g.group_id
  having count(g.rebalances) = :settled_hours and sum(g.rebalances) = 0
),

topic as (
  select
    t.*,
    t.kind = 'changelog' and (s.application_id is null or u.sent_per_byte is null) as may_be_restored,
    coalesce(u.sent_per_byte * t.bytes_in, 0) as usual_bytes
  from topic_bytes as t
  left join usual_reading as u using (cluster, topic)
  left join settled_application as s using (cluster, application_id)
  where t.hour = cast(:hour as timestamptz)
),

-- For how long what is written stays in the page cache.
page_cache as (
  select
    t.cluster,
    max(r.page_cache_bytes) as bytes,
    max(r.page_cache_bytes)
    / nullif(sum(t.bytes_in * t.replication_factor / nullif(t.covered_seconds, 0)), 0) as seconds
  from topic as t
  inner join cluster_reads as r using (cluster)
  group by t.cluster
),

group_topic as (
  select
    r.*,
    r.fresh_bytes + r.backlog_bytes as consumed_bytes,
    t.bytes_in / nullif(t.covered_seconds, 0) as bytes_in_per_second
  from topic_readers as r
  inner join topic as t using (hour, cluster, topic)
  where r.hour = cast(:hour as timestamptz)
),

-- What a group reads that isn't in the page cache: all of it when it lags that far, else the older part of the backlog.
cold_topic as (
  select
    g.*,
    accounted_bytes,
    -- It has said nothing since it reads from disk, or jumped back and has hardly had the time to commit.
    is_cold and (
      g.is_silent or (g.rewinds > 0 and 60 * l.minutes_above <= 2 * g.seconds_between_commits)
    ) as is_untold,
    case
      when is_cold then g.consumed_bytes
      else greatest(g.backlog_bytes - coalesce(g.bytes_in_per_second * c.seconds, 0), 0)
    end as cold_bytes
  from group_topic as g
  inner join page_cache as c using (cluster)
  left join loud_cluster as l using (cluster)
  cross join lateral (
    select coalesce(g.lag_seconds > c.seconds or g.lag_bytes > c.bytes, false) as is_cold
  ) as lag
  -- What it read before its first commit, or between a jump back and the next one, isn't seen: about one step more of
  -- those between commits, and after a jump as much again.
  cross join lateral (
    select
      g.consumed_bytes * case
        when not is_cold or g.commits_per_partition is null then 1
        when g.rewinds > 0 then 2
        else 1 + 1 / greatest(g.commits_per_partition - 1, 1)
      end as accounted_bytes
  ) as accounted
),

cold_group as (
  select
    cluster,
    group_id,
    sum(cold_bytes) as cold_bytes,
    sum(lag_bytes) as lag_bytes,
    sum(rewinds) as rewinds
  from cold_topic
  group by cluster, group_id
),

unaccounted_topic as (
  select
    t.cluster,
    t.topic,
    t.bytes_out,
    t.covered_seconds,
    coalesce(g.accounted_bytes, 0) as accounted_bytes,
    t.usual_bytes,
    -- What is usual beyond what groups read of new records goes to readers that never commit, whatever else groups read.
    greatest(
      t.bytes_out - coalesce(g.accounted_bytes, 0) - greatest(t.usual_bytes - coalesce(g.fresh_bytes, 0), 0), 0
    ) as unaccounted_bytes,
    coalesce(t.may_be_restored or g.has_untold_reader, false) as has_known_reader,
    g.group_ids,
    m.clients as clients_without_commits
  from topic as t
  left join (
    select
      cluster,
      topic,
      sum(accounted_bytes) as accounted_bytes,
      sum(fresh_bytes) as fresh_bytes,
      bool_or(is_untold) as has_untold_reader,
      jsonb_agg(group_id order by group_id) as group_ids
    from cold_topic
    group by cluster, topic
  ) as g using (cluster, topic)
  left join (
    select
      m.cluster,
      m.topic,
      jsonb_agg(distinct format('%s on %s (group %s)', m.client_id, m.host, m.group_id)) as clients
    from (
      select
        h.cluster,
        h.group_id,
        h.client_id,
        h.host,
        jsonb_object_keys(h.assignment) as topic
      from inventory.consumer_member_hourly as h
      where h.hour = cast(:hour as timestamptz)
    ) as m
    where not exists (
      select 1 from group_topic as g where g.cluster = m.cluster and g.group_id = m.group_id and g.topic = m.topic
    )
    group by m.cluster, m.topic
  ) as m using (cluster, topic)
  where t.kind <> 'internal' and t.bytes_out is not null
),

-- Which clients fetch how much just now, where quotas make the brokers count it.
fetching_client as (
  select
    f.cluster,
    f.client_id,
    f.user_name,
    f.bytes_per_second,
    m.group_ids
  from (
    select
      s.cluster,
      s.labels::jsonb ->> 'client' as client_id,
      s.labels::jsonb ->> 'user' as user_name,
      sum(s.value) as bytes_per_second
    from metrics.broker_sample as s
    inner join loud_cluster using (cluster)
    where s.hour = cast(:hour as timestamptz) and s.metric = 'client_fetch_bytes_per_second' and s.value > 0
    group by s.cluster, s.labels
  ) as f
  left join (
    select
      h.cluster,
      h.client_id,
      jsonb_agg(distinct h.group_id) as group_ids
    from inventory.consumer_member_hourly as h
    inner join group_topic using (cluster, group_id)
    where h.hour = cast(:hour as timestamptz)
    group by h.cluster, h.client_id
  ) as m using (cluster, client_id)
),

-- A part of what is counted that isn't a consumer's whim.
known_reads as (
  select
    r.cluster,
    coalesce((select sum(g.cold_bytes) from cold_group as g where g.cluster = r.cluster), 0) as cold_group_bytes,
    coalesce(
      (select sum(u.unaccounted_bytes) from unaccounted_topic as u where u.cluster = r.cluster and u.has_known_reader), 0
    ) as restore_bytes,
    greatest(
      r.replicated_per_second * c.seconds
      - coalesce((select sum(t.bytes_in * (t.replication_factor - 1)) from topic as t where t.cluster = r.cluster), 0), 0
    ) as catching_up_bytes
  from cluster_reads as r
  inner join counted as c using (cluster)
),

measured as (
  select
    r.*,
    e.seconds as counted_seconds,
    e.counted_from >= r.until as is_over,
    e.bytes as excess_bytes,
    e.read_bytes,
    e.usual_bytes,
    k.cold_group_bytes,
    k.restore_bytes,
    coalesce(k.catching_up_bytes, 0) as catching_up_bytes,
    k.cold_group_bytes + k.restore_bytes + coalesce(k.catching_up_bytes, 0) as explained_bytes,
    (
      select sum(case when u.has_known_reader then 0 else u.unaccounted_bytes end) from unaccounted_topic as u
      where u.cluster = r.cluster
    ) as unaccounted_bytes,
    exists(select 1 from group_topic as g where g.cluster = r.cluster and g.is_unknown) as history_unknown,
    exists(
      select 1 from metrics.partition_hourly as p
      where p.hour = cast(:hour as timestamptz) and p.cluster = r.cluster and p.offsets_at is not null
    ) as offsets_known
  from cluster_reads as r
  left join excess as e using (cluster)
  left join known_reads as k using (cluster)
),

-- A rogue's bytes are both: sent to nobody known, and read from the disk beyond what is usual or known. What is usual at
-- this hour of the week holds the nightly batch; what is usual of all hours is the calm beside it.
weighed as (
  select
    *,
    least(
      unaccounted_bytes,
      read_bytes - case
        when baseline_hours is null then greatest(usual_bytes, explained_bytes) else usual_bytes + explained_bytes
      end
    ) as rogue_bytes
  from measured
),

verdict as (
  select
    *,
    case
      when volumes_above = 0 and (volumes = 0 or volumes_unknown > 0 or brokers_unplaced > 0) then 'skip'
      when volumes_above = 0 then 'ok'
      when excess_bytes is null or unaccounted_bytes is null or not offsets_known or history_unknown then 'skip'
      when rogue_bytes >= :rogue_share * excess_bytes and rogue_bytes > 0 then 'alarm'
      when is_over or brokers_silent > 0 then 'skip'
      else 'ok'
    end as status,
    (
      select
        json_agg(
          json_build_object(
            'topic', u.topic, 'unaccounted_bytes_per_second', u.unaccounted_bytes / u.covered_seconds,
            'unaccounted_bytes', u.unaccounted_bytes, 'sent_bytes', u.bytes_out, 'accounted_bytes', u.accounted_bytes,
            'groups', coalesce(u.group_ids, '[]'),
            'clients_without_commits', coalesce(u.clients_without_commits, '[]')
          )
          order by u.unaccounted_bytes desc
        )
      from (
        select o.*
        from unaccounted_topic as o
        where o.cluster = weighed.cluster and not o.has_known_reader and o.unaccounted_bytes > 0.05 * weighed.excess_bytes
        order by o.unaccounted_bytes desc
        limit 10
      ) as u
    ) as unaccounted_topics,
    (
      select string_agg(u.topic, ', ' order by u.unaccounted_bytes desc)
      from (
        select
          o.topic,
          o.unaccounted_bytes
        from unaccounted_topic as o
        where o.cluster = weighed.cluster and not o.has_known_reader and o.unaccounted_bytes >= 0.2 * weighed.rogue_bytes
        order by o.unaccounted_bytes desc, o.topic asc
        limit 3
      ) as u
    ) as top_topics,
    (
      select
        json_agg(
          json_build_object(
            'client_id', f.client_id, 'user', nullif(f.user_name, ''), 'fetched_bytes_per_second', f.bytes_per_second,
            'groups_that_commit', f.group_ids
          )
          order by f.bytes_per_second desc
        )
      from (
        select c.*
        from fetching_client as c
        where c.cluster = weighed.cluster
        order by c.bytes_per_second desc
        limit 10
      ) as f
    ) as fetching_clients,
    (
      select f.client_id from fetching_client as f
      where f.cluster = weighed.cluster and f.group_ids is null
      and f.bytes_per_second >= 0.2 * weighed.rogue_bytes / weighed.counted_seconds
      order by f.bytes_per_second desc, f.client_id asc limit 1
    ) as top_client,
    (
      select
        json_agg(
          json_build_object(
            'volume_id', s.volume_id, 'broker_id', s.broker_id, 'since', s.since, 'minutes_above', s.minutes_above,
            'read_bytes_per_second', s.rate_above, 'highest_bytes_per_second', s.highest_rate,
            'baseline_bytes_per_second', s.baseline, 'baseline_hours', s.read_baseline_hours,
            'baseline_kind', s.read_baseline_kind
          )
          order by s.rate_above desc
        )
      from spike as s
      where s.cluster = weighed.cluster
    ) as volumes_above_baseline,
    (
      select coalesce(jsonb_agg(to_jsonb(g) - 'cluster' order by g.cold_bytes desc), '[]') from cold_group as g
      where g.cluster = weighed.cluster and g.cold_bytes > 0
    ) as groups_reading_cold
  from weighed
)

select
  cluster as resource,
  status,
  case
    when volumes = 0 then 'No volume of the brokers is known: which instances they run on, or their volumes, is missing.'
    when status = 'skip' and volumes_above = 0
      then format(
        'Disk reads or their baseline are missing for %s of %s volumes; %s of %s brokers aren''t tied to an instance.',
        volumes_unknown, volumes, brokers_unplaced, brokers
      )
    when volumes_above = 0
      then format('Disk reads are as usual, at most %s MiB/s.', round((highest_rate / 1048576)::numeric, 1))
    when status = 'skip'
      then format(
        'Disk reads are %s MiB/s, far above their usual %s, but %s.',
        round((read_per_second / 1048576)::numeric, 1), round((baseline_per_second / 1048576)::numeric, 1),
        case
          when excess_bytes is null or unaccounted_bytes is null then 'the bytes that topics send aren''t known'
          when not offsets_known or history_unknown then 'the offsets of the groups aren''t known'
          when is_over then 'the bytes that topics send were counted only when it was over'
          else format('%s of %s brokers don''t say what they send', brokers_silent, brokers)
        end
      )
    when status = 'ok' and explained_bytes >= (1 - :rogue_share) * excess_bytes
      then format(
        'Disk reads rose to %s MiB/s, and known readers explain %s %% of it (lagging or rewound groups, restores,'
        || ' replicas that catch up).',
        round((read_per_second / 1048576)::numeric, 1),
        least(round((100 * explained_bytes / nullif(excess_bytes, 0))::numeric), 100)
      )
    when status = 'ok'
      then format(
        'Disk reads rose to %s MiB/s, but known readers account for nearly all that consumers were sent; look at the'
        || ' broker itself (compaction, a backup).',
        round((read_per_second / 1048576)::numeric, 1)
      )
    else format(
      'Broker disks read %s MiB/s against a usual %s%s, for %s min since %s UTC, and no lagging group explains it;'
      || ' %s MiB/s, most of topic %s, go to consumers that commit nothing.',
      round((read_per_second / 1048576)::numeric, 1),
      round((baseline_per_second / 1048576)::numeric, case when baseline_per_second < 0.05 * 1048576 then 2 else 1 end),
      case when baseline_hours < 24 then format(' (known of only %s h)', baseline_hours) end,
      round(minutes_above), to_char(since at time zone 'UTC', 'HH24') || ':' || to_char(since at time zone 'UTC', 'MI'),
      round((unaccounted_bytes / counted_seconds / 1048576)::numeric, 1), top_topics
    )
  end as reason,
  cluster,
  case when status = 'alarm' then
    format(
      'Ask the owner of topic %s who replays it%s. Until then bound the client with kafka-configs --alter --add-config'
      || ' consumer_byte_rate=%s --entity-type clients --entity-name %s (so much of each broker); give replays a cluster of'
      || ' their own.',
      top_topics,
      coalesce(
        ' (members without commits are ' || nullif(unaccounted_topics -> 0 ->> 'clients_without_commits', '[]') || ')', ''
      ),
      cast(round((:floor_bytes_per_second / brokers)::numeric) as bigint), coalesce(top_client, '<client id>')
    )
  end as advice,
  jsonb_build_array(format('cluster:%s', cluster))
  || coalesce(
    (
      select jsonb_agg(format('topic:%s/%s', cluster, t ->> 'topic'))
      from json_array_elements(unaccounted_topics) as t
    ), '[]'::jsonb
  )
  || coalesce(
    (
      select jsonb_agg(format('volume:%s', v ->> 'volume_id'))
      from json_array_elements(volumes_above_baseline) as v
    ), '[]'::jsonb
  ) as touches,
  since,
  round(minutes_above) as minutes_above_baseline,
  read_per_second as read_bytes_per_second,
  baseline_per_second as baseline_bytes_per_second,
  read_per_second / nullif(baseline_per_second, 0) as times_baseline,
  volumes_above_baseline,
  counted_seconds,
  excess_bytes as excess_read_bytes,
  unaccounted_bytes,
  unaccounted_bytes / counted_seconds as unaccounted_bytes_per_second,
  100 * unaccounted_bytes / nullif(excess_bytes, 0) as unaccounted_of_excess_percent,
  unaccounted_topics,
  fetching_clients,
  explained_bytes,
  cold_group_bytes,
  restore_bytes as restored_bytes,
  catching_up_bytes as replica_catching_up_bytes,
  under_replicated_partitions,
  (select c.seconds from page_cache as c where c.cluster = verdict.cluster) as page_cache_holds_seconds,
  (select max(g.lag_seconds) from group_topic as g where g.cluster = verdict.cluster) as longest_lag_seconds,
  groups_reading_cold,
  volumes as volumes_known,
  volumes_unknown
from verdict
order by cluster

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
  - inventory.volume_hourly
  - inventory.instance_hourly
  - inventory.topic_hourly
  - inventory.consumer_member_hourly
identity: [cluster]
params:
  spike_mads: {default: 6, unit: MAD, why: "six deviations above the median of the same hour of the week isn't noise"}
  floor_bytes_per_second: {default: 10485760, unit: bytes/s, why: "10 MiB/s; less doesn't slow a broker's volume"}
  sustained_minutes: {default: 2, unit: minutes, why: "one minute alone is a restart or a segment roll"}
  explained_share: {default: 0.5, unit: share, why: "known cold reads of half the excess explain it, read-ahead the rest"}
  unaccounted_share: {default: 0.3, unit: share, why: "bytes that nobody accounts for must be this much of the excess"}
  page_cache_share: {default: 0.5, unit: share, why: "of a broker's memory; a lag beyond it is read from the disk"}
open_after_hours: 1
clear_after_hours: 2
runbook: |
  1. See which topics' bytes nobody accounts for, and ask their owners who replays them.
  2. Find the client: kafka-consumer-groups --describe --members for groups without commits; on the brokers, the
     connections with the largest send rate (ss -ti), or the request log for Fetch on that topic.
  3. Slow it down: kafka-configs --alter --add-config consumer_byte_rate=… --entity-type clients --entity-name <client>.
  4. Serve replays and backfills from another cluster, or from tiered storage.
blind_spots: |
  Kafka doesn't say who is connected without committing: the topics and amounts are known, the client is inferred.
  A reader of data that is still in the page cache isn't seen. Bytes of changelogs are taken for restores of their
  application; internal topics don't count. Rates of JMX and commits are compared over the time that JMX covers.
*/
with broker as (
  select
    cluster,
    broker_id,
    endpoint,
    instance_id,
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
    case when m.read_baseline_bytes_per_second is not null then
      greatest(
        m.read_baseline_bytes_per_second
        + :spike_mads * greatest(m.read_baseline_mad_bytes_per_second, 0.1 * m.read_baseline_bytes_per_second),
        :floor_bytes_per_second
      )
    end as limit_rate
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

volume_reads as (
  select
    v.cluster,
    v.broker_id,
    v.volume_id,
    v.instance_id,
    v.baseline,
    v.read_baseline_hours,
    v.read_baseline_kind,
    v.limit_rate,
    count(m.at) as minutes_known,
    coalesce(sum(m.period_seconds) filter (where m.rate > v.limit_rate), 0) / 60.0 as minutes_above,
    min(m.at) filter (where m.rate > v.limit_rate) as since,
    max(m.rate) as highest_rate,
    avg(m.rate) filter (where m.rate > v.limit_rate) as rate_above
  from broker_volume as v
  left join volume_minute as m on v.cluster = m.cluster and v.volume_id = m.volume_id
  group by
    v.cluster, v.broker_id, v.volume_id, v.instance_id, v.baseline, v.read_baseline_hours, v.read_baseline_kind,
    v.limit_rate
),

spike as (
  select *
  from volume_reads
  where minutes_above >= :sustained_minutes
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
    sum(b.replication_bytes_out_per_second) as replicated_per_second,
    max(b.under_replicated_partitions_max) as under_replicated_partitions,
    (select count(*) from volume_reads as r where r.cluster = k.cluster) as volumes,
    (select count(*) from volume_reads as r where r.cluster = k.cluster and (r.minutes_known = 0 or r.baseline is null))
      as volumes_unknown,
    (select count(*) from spike as s where s.cluster = k.cluster) as volumes_above,
    (select max(r.highest_rate) from volume_reads as r where r.cluster = k.cluster) as highest_rate,
    (select sum(s.rate_above) from spike as s where s.cluster = k.cluster) as read_per_second,
    (select sum(s.baseline) from spike as s where s.cluster = k.cluster) as baseline_per_second,
    (select min(s.since) from spike as s where s.cluster = k.cluster) as since,
    (select max(s.minutes_above) from spike as s where s.cluster = k.cluster) as minutes_above,
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
    case when m.rate > m.limit_rate then m.rate - m.baseline else 0 end as excess_rate,
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
    max(c.seconds) as seconds
  from spike as s
  inner join counted as c using (cluster)
  left join (
    select
      cluster,
      volume_id,
      sum(excess_rate * seconds) / nullif(sum(seconds), 0) as excess_rate
    from overlap
    group by cluster, volume_id
  ) as o using (cluster, volume_id)
  group by s.cluster
),

topic_log as (
  select
    cluster,
    topic,
    sum(log_end_offset - log_start_offset) as records,
    sum(log_end_offset_last - log_end_offset_first) as produced
  from metrics.partition_hourly
  where hour = cast(:hour as timestamptz)
  group by cluster, topic
),

topic_bytes as (
  select
    t.cluster,
    t.topic,
    t.bytes_out,
    t.covered_seconds,
    l.produced,
    coalesce(i.kind, case when left(t.topic, 2) = '__' then 'internal' else 'plain' end) as kind,
    t.bytes_in * (coalesce(i.replication_factor, 1) - 1) as replicated,
    -- As it lies on the disk, so that compression and batches count as they are sent.
    coalesce(
      t.log_bytes / coalesce(i.replication_factor, 1) / nullif(l.records, 0), t.bytes_in / nullif(t.messages_in, 0)
    ) as bytes_per_record
  from metrics.topic_hourly as t
  left join topic_log as l using (cluster, topic)
  left join inventory.topic_hourly as i on t.hour = i.hour and t.cluster = i.cluster and t.topic = i.topic
  where t.hour = cast(:hour as timestamptz)
),

group_topic as (
  select
    p.cluster,
    p.group_id,
    p.topic,
    t.kind,
    sum(p.lag_records) * max(t.bytes_per_record) as lag_bytes,
    bool_or(p.records_consumed is null) as is_unknown,
    sum(p.rewinds) as rewinds,
    sum(p.records_consumed * least(1, t.covered_seconds / nullif(p.consumed_seconds, 0))) * max(t.bytes_per_record)
      as consumed_bytes,
    greatest(sum(p.records_consumed) - max(t.produced), 0) * max(t.bytes_per_record)
    * least(1, max(t.covered_seconds) / nullif(max(p.consumed_seconds), 0)) as backlog_bytes
  from metrics.consumer_partition_hourly as p
  inner join topic_bytes as t using (cluster, topic)
  where p.hour = cast(:hour as timestamptz)
  group by p.cluster, p.group_id, p.topic, t.kind
),

-- What a group reads that isn't in the page cache: all of it when it lags that far, else what it read of the backlog.
cold_group as (
  select
    g.cluster,
    g.group_id,
    sum(case when g.lag_bytes > r.page_cache_bytes then g.consumed_bytes else g.backlog_bytes end) as cold_bytes,
    sum(g.lag_bytes) as lag_bytes,
    sum(g.rewinds) as rewinds
  from group_topic as g
  inner join cluster_reads as r using (cluster)
  group by g.cluster, g.group_id
),

unaccounted_topic as (
  select
    t.cluster,
    t.topic,
    t.bytes_out,
    t.covered_seconds,
    coalesce(g.accounted_bytes, 0) as accounted_bytes,
    greatest(t.bytes_out - coalesce(g.accounted_bytes, 0), 0) as unaccounted_bytes,
    g.group_ids,
    m.clients as clients_without_commits
  from topic_bytes as t
  left join (
    select
      cluster,
      topic,
      sum(consumed_bytes) as accounted_bytes,
      jsonb_agg(group_id order by group_id) as group_ids
    from group_topic
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
  where t.kind in ('plain', 'repartition') and t.bytes_out is not null
),

-- A part of what is counted that isn't a consumer's whim.
known_reads as (
  select
    r.cluster,
    coalesce((select sum(g.cold_bytes) from cold_group as g where g.cluster = r.cluster), 0) as cold_group_bytes,
    coalesce(
      (select sum(t.bytes_out) from topic_bytes as t where t.cluster = r.cluster and t.kind = 'changelog'), 0
    ) as restore_bytes,
    greatest(
      r.replicated_per_second * c.seconds
      - coalesce((select sum(t.replicated) from topic_bytes as t where t.cluster = r.cluster), 0), 0
    ) as catching_up_bytes
  from cluster_reads as r
  inner join counted as c using (cluster)
),

measured as (
  select
    r.*,
    e.seconds as counted_seconds,
    e.bytes as excess_bytes,
    k.cold_group_bytes,
    k.restore_bytes,
    coalesce(k.catching_up_bytes, 0) as catching_up_bytes,
    k.cold_group_bytes + k.restore_bytes + coalesce(k.catching_up_bytes, 0) as explained_bytes,
    (select sum(u.unaccounted_bytes) from unaccounted_topic as u where u.cluster = r.cluster) as unaccounted_bytes,
    exists(select 1 from group_topic as g where g.cluster = r.cluster and g.is_unknown) as history_unknown,
    exists(
      select 1 from metrics.partition_hourly as p
      where p.hour = cast(:hour as timestamptz) and p.cluster = r.cluster and p.offsets_at is not null
    ) as offsets_known
  from cluster_reads as r
  left join excess as e using (cluster)
  left join known_reads as k using (cluster)
),

verdict as (
  select
    *,
    case
      when volumes_above = 0 and (volumes = 0 or volumes_unknown > 0 or brokers_unplaced > 0) then 'skip'
      when volumes_above = 0 then 'ok'
      when excess_bytes is null or unaccounted_bytes is null or not offsets_known or history_unknown then 'skip'
      when explained_bytes >= :explained_share * excess_bytes then 'ok'
      when unaccounted_bytes < :unaccounted_share * excess_bytes then 'ok'
      else 'alarm'
    end as status,
    (
      select
        json_agg(
          json_build_object(
            'topic', u.topic, 'unaccounted_bytes_per_second', u.unaccounted_bytes / u.covered_seconds,
            'unaccounted_bytes', u.unaccounted_bytes, 'sent_bytes', u.bytes_out, 'accounted_bytes', u.accounted_bytes,
            'groups', u.group_ids, 'clients_without_commits', u.clients_without_commits
          )
          order by u.unaccounted_bytes desc
        )
      from (
        select o.*
        from unaccounted_topic as o
        where o.cluster = measured.cluster and o.unaccounted_bytes > 0.05 * measured.excess_bytes
        order by o.unaccounted_bytes desc
        limit 10
      ) as u
    ) as unaccounted_topics,
    (
      select u.topic from unaccounted_topic as u
      where u.cluster = measured.cluster order by u.unaccounted_bytes desc nulls last, u.topic asc limit 1
    ) as top_topic,
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
      where s.cluster = measured.cluster
    ) as volumes_above_baseline,
    (
      select coalesce(jsonb_agg(to_jsonb(g) - 'cluster' order by g.cold_bytes desc), '[]') from cold_group as g
      where g.cluster = measured.cluster and g.cold_bytes > 0
    ) as groups_reading_cold
  from measured
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
          else 'the offsets of the groups aren''t known'
        end
      )
    when explained_bytes >= :explained_share * excess_bytes
      then format(
        'Disk reads rose to %s MiB/s, and known readers explain %s %% of it (lagging or rewound groups, restores,'
        || ' replicas that catch up).',
        round((read_per_second / 1048576)::numeric, 1), round((100 * explained_bytes / nullif(excess_bytes, 0))::numeric)
      )
    when status = 'ok'
      then format(
        'Disk reads rose to %s MiB/s, but known groups account for nearly all that consumers were sent; look at the'
        || ' broker itself (compaction, a backup).',
        round((read_per_second / 1048576)::numeric, 1)
      )
    else format(
      'Broker disks read %s MiB/s against a usual %s, for %s min since %s UTC, and no lagging group explains it;'
      || ' %s MiB/s, most of topic %s, go to consumers that commit nothing.',
      round((read_per_second / 1048576)::numeric, 1), round((baseline_per_second / 1048576)::numeric, 1),
      round(minutes_above), to_char(since at time zone 'UTC', 'HH24') || ':' || to_char(since at time zone 'UTC', 'MI'),
      round((unaccounted_bytes / counted_seconds / 1048576)::numeric, 1), top_topic
    )
  end as reason,
  cluster,
  case when status = 'alarm' then
    format(
      'Ask the owner of topic %s who replays it%s. Until then bound the client with kafka-configs --alter --add-config'
      || ' consumer_byte_rate=%s --entity-type clients --entity-name <client id>; give replays a cluster of their own.',
      top_topic,
      coalesce(' (members without commits are ' || (unaccounted_topics -> 0 ->> 'clients_without_commits') || ')', ''),
      cast(round((:floor_bytes_per_second / 2)::numeric) as bigint)
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
  100 * unaccounted_bytes / nullif(excess_bytes, 0) as unaccounted_percent_of_excess,
  unaccounted_topics,
  explained_bytes,
  cold_group_bytes,
  restore_bytes,
  catching_up_bytes as replica_catching_up_bytes,
  under_replicated_partitions,
  groups_reading_cold,
  volumes as volumes_known,
  volumes_unknown
from verdict
order by cluster

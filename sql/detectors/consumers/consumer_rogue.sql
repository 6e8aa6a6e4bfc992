/*
title: A consumer that nobody knows reads cold data
resource_kind: cluster
owner_role: platform
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
params:
  spike_mads: {default: 6, unit: MAD, why: "six deviations above the median of the same hour of the week isn't noise"}
  floor_bytes_per_second: {default: 10485760, unit: bytes/s, why: "10 MiB/s of a cluster's disks; less slows nobody"}
  sustained_minutes: {default: 5, unit: minutes, why: "of the hour, together; three or four are a restart, a segment roll, somebody's look"}
  heavy_bytes: {default: 107374182400, unit: bytes, why: "100 GiB in fewer minutes empty the page cache of most brokers all the same"}
  rogue_share: {default: 0.2, unit: share, why: "of the excess; less may be read-ahead, or bytes counted a minute apart"}
  page_cache_share: {default: 0.5, unit: share, why: "of a broker's memory; a lag beyond it is read from the disk"}
  usual_days: {default: 7, unit: days, why: "what a topic is usually sent shows over a week, as readers that never commit"}
  usual_hours: {default: 24, unit: hours, why: "with less than a day known nothing is called usual"}
  settled_hours: {default: 6, unit: hours, why: "so long after a rebalance or a start stores may still be restored"}
key_metrics:
  [read_bytes_per_second, baseline_bytes_per_second, minutes_above_baseline, unaccounted_bytes_per_second,
   unaccounted_of_excess_percent]
verdicts:
  rogue:
    status: firing
    severity: critical
    message: >
      Consumers that commit nothing are sent {{ unaccounted_bytes_per_second }}, most of topic
      {{ unaccounted_topics[:3] | map(attribute="topic") | join(", ") }}. The brokers' disks read
      {{ read_bytes_per_second }} against a usual {{ baseline_bytes_per_second }}{% if baseline_known_hours
      and baseline_known_hours < usual_hours %} (known of only {{ baseline_known_hours }}){% endif %}, for
      {{ minutes_above_baseline }} since {{ since }}, and no known reader explains it.
    actions:
      - >
        Ask the owner of topic {{ unaccounted_topics[0].topic }} who replays it{% if
        unaccounted_topics[0].members_without_commits %} (members without commits:{% for member in
        unaccounted_topics[0].members_without_commits %} {{ member.client_id }} on {{ member.host }}, group
        {{ member.group_id }}{{ ";" if not loop.last }}{% endfor %}){% endif %}. {% if top_client %}Until then bound client
        {{ top_client }}, which is in no group that commits{% else %}With a default quota the brokers count by client, so
        that it can be found and bound{% endif %}; a quota holds for each broker by itself. Give replays a cluster of their
        own.
    commands:
      - >
        {% if top_client %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --add-config
        consumer_byte_rate={{ floor_bytes_per_second.value // brokers.value }} --entity-type clients --entity-name
        {{ top_client }}{% endif %}
      - >
        {% if not top_client %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --add-config
        consumer_byte_rate=1000000000 --entity-type clients --entity-default{% endif %}
      - >
        kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --all-groups --members --verbose |
        grep -F -- {{ unaccounted_topics[0].topic }}
  quiet: {status: ok, message: "Disk reads are as usual, at most {{ highest_read_bytes_per_second }}."}
  explained:
    status: ok
    message: >
      Disk reads rose to {{ read_bytes_per_second }}, and known readers explain {{ explained_percent }} of it: groups that
      lag or jumped back {{ cold_group_bytes_per_second }}, restores {{ restored_bytes_per_second }}, replicas that catch up
      {{ catching_up_bytes_per_second }}.
  broker_itself:
    status: ok
    message: >
      Disk reads rose to {{ read_bytes_per_second }}, but known readers account for nearly all that consumers were sent; look
      at the broker itself (compaction, a backup).
  no_volumes:
    status: unknown
    message: "No volume of the brokers is known: which instances they run on, or their volumes, is missing."
  reads_missing:
    status: unknown
    message: >
      Disk reads or their baseline are missing for {{ volumes_unknown }} of {{ volumes_known }} volumes;
      {{ brokers_unplaced }} of {{ brokers }} brokers aren't tied to an instance.
  sent_unknown:
    status: unknown
    message: >
      Disk reads are {{ read_bytes_per_second }}, far above their usual {{ baseline_bytes_per_second }}, but
      the bytes that topics send aren't known.
  offsets_unknown:
    status: unknown
    message: >
      Disk reads are {{ read_bytes_per_second }}, far above their usual {{ baseline_bytes_per_second }}, but
      the offsets of the groups aren't known.
  over:
    status: unknown
    message: >
      Disk reads were {{ read_bytes_per_second }}, far above their usual {{ baseline_bytes_per_second }}, but
      the bytes that topics send were counted only when it was over, or before.
  brokers_silent:
    status: unknown
    message: >
      Disk reads are {{ read_bytes_per_second }}, far above their usual {{ baseline_bytes_per_second }}, but
      {{ brokers_silent }} of {{ brokers }} brokers don't say what they send.
description: |
  Consumers at the end of a log are served from the page cache; a disk is read when somebody wants what isn't there any
  more. First: do the brokers' volumes, one or all of a cluster together, read more than usual in the same hour of the
  week (median and deviations of four weeks; of all hours while there are fewer than three), by spike_mads deviations and
  by floor_bytes_per_second, for sustained_minutes, or by heavy_bytes in all?

  Then two amounts, over the time that JMX counted. Unexplained: what the disks read beyond the usual or the known, which
  is groups that lag beyond the page cache or work off an older backlog, restores of state stores, and replicas that
  catch up. Unaccounted: what topics sent beyond the progress that groups committed, in bytes, and beyond what readers
  without commits are always sent. A rogue's bytes are both, so the lesser counts: above rogue_share of the excess it is
  an alarm.

  What a group read is told by its commits; of one that reads from disk a step more than those is taken to be its own, and
  one more for each jump back. A group that only lags, and reads nothing, explains nothing.

  The page cache holds what was written last. How old a record in it can be is found by going back, hour by hour, until
  what came in fills page_cache_share of the brokers' memory.
causes:
  cold_reads_starve_disk: [rogue]
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
limitations: |
  Kafka doesn't say who is connected without committing: topics and amounts are known, the client only where quotas make
  brokers count by client, for an hour after its last request, and with how much only if JMX was asked while it read; one
  that fetches on most hours of a day is it only with what is more than usual. A reader of data that is still in the page
  cache isn't seen; nor one that began so long ago that it is usual, or that reads less beside a nightly batch than that
  varies; nor, in a cluster's first weeks, one that reads less than groups which always lag.
  A changelog's bytes beyond the usual are taken for a restore unless its application has long been settled. A known group
  far behind that has members and hasn't committed is taken for the reader of its topics, and so is one that jumped back
  if the disks were read for no longer than it takes to commit twice; else a step between commits for each jump.
  Internal topics don't count. Rates of JMX and commits are compared over the time that JMX covers.
*/
with disk as (
  select
    cluster,
    count(*) as volumes_known,
    count(*) filter (where minutes_known = 0 or baseline_bytes_per_second is null) as volumes_unknown,
    count(*) filter (where is_above) as volumes_above,
    max(highest_bytes_per_second) as highest,
    loud_from as since,
    loud_until as until,
    loud_minutes as minutes,
    sum(above_bytes_per_second) as read,
    sum(baseline_bytes_per_second) filter (where is_above) as baseline,
    sum(counted_bytes_per_second) filter (where is_above) as counted_read,
    sum(counted_excess_bytes_per_second) filter (where is_above) as counted_excess,
    min(baseline_hours) filter (where is_above and baseline_kind = 'all_hours') as baseline_hours,
    json_agg(
      json_build_object(
        'volume_id', volume_id, 'broker_id', broker_id, 'minutes_above', minutes_above,
        'read_bytes_per_second', above_bytes_per_second, 'highest_bytes_per_second', highest_bytes_per_second,
        'baseline_bytes_per_second', baseline_bytes_per_second
      )
      order by above_bytes_per_second desc, volume_id asc
    ) filter (where is_named) as volumes
  from (
    -- One that read some bytes more beside another that was read in full has nothing to do with it.
    select
      *,
      minutes_above > 0 as is_above,
      above_bytes_per_second - baseline_bytes_per_second
      >= :rogue_share * max(above_bytes_per_second - baseline_bytes_per_second) over (partition by cluster) as is_named
    from public.broker_disk_reads(:hour, :spike_mads, :floor_bytes_per_second, :sustained_minutes, :heavy_bytes)
  ) as v
  group by cluster, loud_from, loud_until, loud_minutes
),

-- All bytes below are those of the time that JMX counted.
spike as materialized (
  select
    d.*,
    t.counted_from,
    t.seconds,
    d.counted_excess * t.seconds as excess_bytes,
    d.counted_read * t.seconds as read_bytes,
    d.baseline * t.seconds as usual_bytes
  from disk as d
  left join public.topic_counted as t on d.cluster = t.cluster and t.hour = :hour
  where d.volumes_above > 0
),

group_topic as materialized (
  select
    s.cluster,
    r.*,
    -- It has said nothing since it reads from disk, or jumped back and has hardly had the time to commit.
    r.is_cold and (r.is_silent or (r.rewinds > 0 and 60 * s.minutes <= 2 * r.seconds_between_commits)) as is_untold
  from spike as s
  cross join lateral public.group_reads(s.cluster, :hour, :page_cache_share, 60 * s.minutes) as r
),

cold_group as (
  select
    cluster,
    sum(cold_bytes) as cold_group_bytes,
    max(lag_seconds) as lag_seconds,
    bool_or(is_unknown) as is_unknown,
    json_agg(
      json_build_object(
        'group_id', group_id, 'topic', topic, 'cold_bytes', cold_bytes, 'lag_bytes', lag_bytes, 'rewinds', rewinds
      )
      order by cold_bytes desc, group_id asc, topic asc
    ) filter (where cold_bytes > 0) as groups
  from group_topic
  group by cluster
),

-- What the commits of groups account for.
accounted as (
  select
    cluster,
    topic,
    sum(accounted_bytes) as accounted_bytes,
    sum(fresh_bytes) as fresh_bytes,
    bool_or(is_untold) as is_untold,
    jsonb_agg(group_id order by group_id) as group_ids
  from group_topic
  group by cluster, topic
),

sent as materialized (
  select
    t.*,
    coalesce(a.accounted_bytes, 0) as accounted_bytes,
    coalesce(a.fresh_bytes, 0) as fresh_bytes,
    a.is_untold,
    a.group_ids
  from spike as s
  inner join public.topic_bytes as t on s.cluster = t.cluster and t.hour = :hour
  left join accounted as a on t.cluster = a.cluster and t.topic = a.topic
  where t.kind in ('plain', 'changelog', 'repartition') and t.bytes_out is not null
),

-- To find out what is usual takes longest, and matters only where groups don't account for all.
usual as materialized (
  select s.cluster, u.topic, u.sent_per_byte
  from spike as s
  cross join lateral public.baseline_readers(
    s.cluster, :hour, :usual_days, :usual_hours,
    array(select t.topic from sent as t where t.cluster = s.cluster and t.bytes_out > t.accounted_bytes)
  ) as u
),

-- By itself: else each topic is compared with each of them.
settled as materialized (
  select
    s.cluster,
    a.application_id
  from spike as s
  cross join lateral public.settled_applications(s.cluster, :hour, :settled_hours) as a
),

-- What a topic sent to nobody known; where it may be a restore, or a group reads whose commits don't tell, it is known.
topic as materialized (
  select
    t.cluster,
    t.topic,
    t.bytes_out as sent_bytes,
    t.accounted_bytes,
    t.group_ids,
    nullif(t.covered_seconds, 0) as covered_seconds,
    case when k.is_known then beyond.bytes else 0 end as restored_bytes,
    case when k.is_known then 0 else beyond.bytes end as unaccounted_bytes
  from sent as t
  left join usual as u on t.cluster = u.cluster and t.topic = u.topic
  left join settled on t.cluster = settled.cluster and t.application_id = settled.application_id
  cross join lateral (
    -- What is usual beyond what groups read of new records goes to readers that never commit, whatever else groups read.
    select
      greatest(t.bytes_out - t.accounted_bytes - greatest(u.sent_per_byte * t.bytes_in - t.fresh_bytes, 0), 0) as bytes
  ) as beyond
  cross join lateral (
    select
      t.is_untold
      or (t.kind = 'changelog' and (settled.application_id is null or u.sent_per_byte is null)) as is_known
  ) as k
),

unaccounted as (
  select
    t.cluster,
    sum(t.restored_bytes) as restored_bytes,
    sum(t.unaccounted_bytes) as unaccounted_bytes,
    jsonb_agg(public.resource_key('topic', t.cluster, t.topic) order by t.topic) filter (where t.is_large) as affected,
    json_agg(
      json_build_object(
        'topic', t.topic, 'unaccounted_bytes_per_second', t.unaccounted_bytes / t.covered_seconds,
        'sent_bytes_per_second', t.sent_bytes / t.covered_seconds,
        'accounted_bytes_per_second', t.accounted_bytes / t.covered_seconds,
        'groups', coalesce(t.group_ids, '[]'), 'members_without_commits', (
          select coalesce(jsonb_agg(to_jsonb(m) - 'topic' order by m.group_id, m.client_id, m.host), '[]')
          from public.members_without_commits(t.cluster, :hour) as m where m.topic = t.topic
        )
      )
      order by t.unaccounted_bytes desc, t.topic asc
    ) filter (where t.is_large) as topics
  from (
    select
      *,
      unaccounted_bytes > 0
      and unaccounted_bytes >= :rogue_share * max(unaccounted_bytes) over (partition by cluster)
      and row_number() over (partition by cluster order by unaccounted_bytes desc, topic asc) <= 10 as is_large
    from topic
  ) as t
  group by t.cluster
),

measured as (
  select
    *,
    coalesce(g.cold_group_bytes, 0) + u.restored_bytes + r.catching_up_bytes as explained_bytes,
    g.is_unknown or not exists (
      select 1 from metrics.partition_hourly as p
      where p.hour = :hour and p.cluster = s.cluster and p.offsets_at is not null
    ) as offsets_unknown
  from spike as s
  inner join public.cluster_brokers as b using (cluster)
  left join cold_group as g using (cluster)
  left join unaccounted as u using (cluster)
  cross join lateral (
    -- What followers are sent beyond what is written.
    select
      greatest(
        b.replicated_bytes_per_second * s.seconds - coalesce(sum(w.bytes_in * (w.replication_factor - 1)), 0), 0
      ) as catching_up_bytes
    from public.topic_bytes as w
    where w.hour = :hour and w.cluster = s.cluster
  ) as r
  where b.hour = :hour
),

-- A rogue's bytes are both: sent to nobody known, and read from the disk beyond what is usual or known. What is usual at
-- this hour of the week holds the nightly batch; what is usual of all hours is the calm beside it.
judged as (
  select
    *,
    least(
      unaccounted_bytes,
      read_bytes - case
        when baseline_hours is null then greatest(usual_bytes, explained_bytes) else usual_bytes + explained_bytes
      end
    ) as rogue_bytes
  from measured
)

select
  case
    when d.volumes_known is null then 'no_volumes'
    when d.volumes_above = 0 and (d.volumes_unknown > 0 or b.brokers_unplaced > 0) then 'reads_missing'
    when d.volumes_above = 0 then 'quiet'
    when w.excess_bytes is null or w.unaccounted_bytes is null then 'sent_unknown'
    when w.offsets_unknown then 'offsets_unknown'
    when w.excess_bytes = 0 then 'over'
    when w.rogue_bytes >= :rogue_share * w.excess_bytes then 'rogue'
    when w.counted_from >= w.until then 'over'
    when b.brokers_silent > 0 then 'brokers_silent'
    when w.explained_bytes >= (1 - :rogue_share) * w.excess_bytes then 'explained'
    else 'broker_itself'
  end as reason,
  b.cluster,
  w.affected,
  w.since,
  w.minutes as minutes_above_baseline,
  w.read as read_bytes_per_second,
  w.baseline as baseline_bytes_per_second,
  w.baseline_hours as baseline_known_hours,
  d.highest as highest_read_bytes_per_second,
  w.excess_bytes / w.seconds as excess_read_bytes_per_second,
  w.unaccounted_bytes / w.seconds as unaccounted_bytes_per_second,
  100 * w.unaccounted_bytes / nullif(w.excess_bytes, 0) as unaccounted_of_excess_percent,
  w.topics as unaccounted_topics,
  f.top_client,
  f.clients as fetching_clients,
  100 * least(w.explained_bytes, w.excess_bytes) / nullif(w.excess_bytes, 0) as explained_percent,
  w.cold_group_bytes / w.seconds as cold_group_bytes_per_second,
  w.restored_bytes / w.seconds as restored_bytes_per_second,
  w.catching_up_bytes / w.seconds as catching_up_bytes_per_second,
  w.groups as groups_reading_cold,
  w.lag_seconds as longest_lag_seconds,
  c.seconds as page_cache_holds_seconds,
  w.seconds as counted_seconds,
  d.volumes as volumes_above_baseline,
  coalesce(d.volumes_known, 0) as volumes_known,
  d.volumes_unknown,
  b.brokers,
  b.brokers_unplaced,
  b.brokers_silent,
  b.under_replicated_partitions
from public.cluster_brokers as b
left join disk as d using (cluster)
left join judged as w using (cluster)
left join public.page_cache(:hour, :hour, :page_cache_share) as c using (cluster)
left join lateral (
  select
    -- The only one may have been it and have stopped since.
    (array_agg(t.client_id) filter (
      where t.is_suspect
      and (t.suspects = 1 or t.is_large)
    ))[1] as top_client,
    json_agg(
      json_build_object(
        'client_id', t.client_id, 'user', t.user_name, 'fetched_bytes_per_second', t.bytes_per_second,
        'usual_bytes_per_second', t.usual_bytes_per_second, 'groups_that_commit', t.group_ids
      )
    ) as clients
  from (
    -- Those first that commit nothing and don't always fetch as much.
    select
      c.*,
      l.is_large,
      p.is_suspect,
      count(*) filter (where p.is_suspect) over () as suspects
    from public.client_fetches(w.cluster, :hour) as c
    cross join lateral (
      select
        c.bytes_per_second - coalesce(c.usual_bytes_per_second, 0)
        >= :rogue_share * w.rogue_bytes / w.seconds as is_large
    ) as l
    cross join lateral (
      select c.group_ids is null and (l.is_large or coalesce(c.usual_bytes_per_second, 0) = 0) as is_suspect
    ) as p
    order by p.is_suspect desc, c.group_ids is not null asc, c.bytes_per_second desc, c.client_id asc
    limit 10
  ) as t
) as f on true
where b.hour = :hour
order by b.cluster

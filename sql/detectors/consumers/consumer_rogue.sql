/*
title: "Rogue consumer: untracked cold reads"
resource_kind: cluster
narrower_kinds: [group, client, topic]
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
  - inventory.msk_cluster_hourly
  - metrics.msk_consumer_lag_hourly
params:
  spike_mads:
    default: 6
    unit: MAD
    why: "six deviations above the median of the same hour of the week are not noise"
  floor_bytes_per_second:
    default: 10485760
    unit: bytes/s
    why: "10 MiB/s of all disks of a cluster; less slows no consumer"
  sustained_minutes:
    default: 5
    unit: minutes
    why: "of the hour, in total; three or four minutes are a restart, a segment roll, or an interactive session"
  heavy_bytes:
    default: 107374182400
    unit: bytes
    why: "100 GiB in fewer minutes evict the page cache of most brokers as well"
  rogue_share:
    default: 0.2
    unit: share
    why: "of the excess; less may be read-ahead, or bytes counted a minute apart"
  page_cache_share:
    default: 0.5
    unit: share
    why: "of a broker's memory; records older than that are read from disk"
  baseline_days:
    default: 7
    unit: days
    why: "a week shows the baseline of bytes out to readers that never commit"
  baseline_hours:
    default: 24
    unit: hours
    why: "less than a day of history gives no baseline"
  settled_hours:
    default: 6
    unit: hours
    why: "state stores may still be restored for so long after a rebalance or a start"
  reader_days:
    default: 2
    unit: days
    why: "a reader that has stopped is evaluated for so long, so that its ticket closes"
key_metrics:
  [read_bytes_per_second, baseline_bytes_per_second, minutes_above_baseline, unaccounted_bytes_per_second,
   unaccounted_of_excess_percent]
verdicts:
  rogue:
    status: firing
    severity: critical
    message: >
      Broker disks of cluster {{ cluster }} read {{ read_bytes_per_second }} (baseline {{ baseline_bytes_per_second }})
      for {{ minutes_above_baseline }} since {{ since }}.
    details:
      - >
        In the {{ counted_seconds }} that JMX covers, disks read {{ excess_read_bytes_per_second }} above the baseline, and
        consumers that do not commit offsets receive {{ unaccounted_bytes_per_second }}, mostly from
        {{ unaccounted_topics | listed("topic", 3) }}.
      - "No lagging group, restore, or replica catch-up explains it."
      - >
        {% if baseline_known_hours and baseline_known_hours < baseline_hours %}The baseline covers only
        {{ baseline_known_hours }}.{% endif %}
      - >
        {% for member in unaccounted_topics[0].members_without_commits %}Client {{ member.client_id }} on
        {{ member.host }} (group {{ member.group_id }}) is assigned {{ unaccounted_topics[0].topic }} and has committed no
        offset. {% endfor %}
      - "{% if top_client %}Client {{ top_client }} belongs to no group that commits offsets.{% endif %}"
    impact: "Page cache pollution slows every consumer of this cluster."
    actions:
      - "Ask the owner of topic {{ unaccounted_topics[0].topic }} who is replaying it."
      - >
        {% if not top_client %}Identify the client: set a default quota, if none exists, so that brokers expose per-client
        byte rates.{% endif %}
      - >
        Throttle {{ "client " ~ top_client if top_client else "that client" }} with consumer_byte_rate (applies per broker).
      - "Prevent it: serve replays from a separate cluster or from tiered storage."
    commands:
      - >
        kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --all-groups --members --verbose |
        grep -F -- {{ unaccounted_topics[0].topic }}
      - >
        {% if not top_client %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --add-config
        consumer_byte_rate=1000000000 --entity-type clients --entity-default{% endif %}
      - >
        {% if top_client %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --add-config
        consumer_byte_rate={{ floor_bytes_per_second.value // brokers.value }} --entity-type clients --entity-name
        {{ top_client }}{% endif %}
  rogue_by_bandwidth:
    status: firing
    severity: warning
    message: >
      Broker disks of cluster {{ cluster }} read {{ read_bytes_per_second }} (baseline {{ baseline_bytes_per_second }})
      for {{ minutes_above_baseline }} since {{ since }}.
    details:
      - "Brokers send {{ excess_sent_bytes_per_second }} above the baseline ({{ baseline_sent_bytes_per_second }})."
      - >
        No consumer group lags beyond the page cache (about {{ cache_seconds }}), so consumers that do not commit offsets
        read old records.
      - "Bytes by topic were not reported: which topic is read is unknown."
    impact: "Page cache pollution slows every consumer of this cluster."
    actions:
      - "Ask the teams that use this cluster who is replaying a topic."
      - "Identify the client: set a default quota, if none exists, so that brokers expose per-client byte rates."
      - "Throttle that client with consumer_byte_rate (applies per broker)."
      - "Enable open monitoring, so that bytes by topic are known next time."
      - "Prevent it: serve replays from a separate cluster or from tiered storage."
    commands:
      - >
        kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --add-config
        consumer_byte_rate=1000000000 --entity-type clients --entity-default
      - >
        {% if cluster_arn %}aws kafka update-monitoring --region {{ region }} --cluster-arn {{ cluster_arn }}
        --current-version {{ current_version }} --open-monitoring
        'Prometheus={JmxExporter={EnabledInBroker=true},NodeExporter={EnabledInBroker=true}}'{% endif %}
  stopped:
    status: ok
    message: "Disk reads of cluster {{ cluster }} are still above the baseline, but for other readers."
  normal:
    status: ok
    message: "Disk reads of cluster {{ cluster }} are within the baseline, at most {{ highest_read_bytes_per_second }}."
  explained:
    status: ok
    message: "Known readers explain {{ explained_percent }} of the disk reads above the baseline ({{ excess_read_bytes_per_second }})."
    details:
      - "Groups that lag or reset their offsets: {{ cold_group_bytes_per_second }}."
      - "State store restores: {{ restored_bytes_per_second }}."
      - "Replica catch-up: {{ catching_up_bytes_per_second }}."
  broker_internal_reads:
    status: ok
    message: >
      Disk reads rose to {{ read_bytes_per_second }}, but committed offsets account for nearly all bytes out.
    details:
      - "The broker itself may read the disk, such as for log compaction or a backup."
  no_volumes:
    status: unknown
    message: "Not evaluated: no EBS volume of the brokers of cluster {{ cluster }} is known."
    details:
      - "The instances of the brokers or their volumes are missing in the inventory."
  disk_reads_unknown:
    status: unknown
    message: >
      Not evaluated: disk reads or their baseline are missing for {{ volumes_unknown }} of
      {{ volumes_known | counted("volume") }}.
    details:
      - "{{ brokers_unplaced }} of {{ brokers | counted('broker') }} could not be matched to an EC2 instance."
  bytes_out_unknown:
    status: unknown
    message: >
      Not evaluated: disk reads are {{ read_bytes_per_second }} (baseline {{ baseline_bytes_per_second }}), but bytes out
      per topic were not reported.
  monitoring_level_too_low:
    status: unknown
    message: >-
      Not evaluated: disk reads of cluster {{ cluster }} need enhanced monitoring PER_BROKER
      {%- if monitoring_usd_per_month %} (at most {{ monitoring_usd_per_month }} for
      {{ monitored_brokers | counted("broker") }}){% endif %}.
    details: ["Its monitoring level is {{ monitoring_level }}. AWS charges for metrics beyond it."]
  lagging_group_may_explain:
    status: unknown
    message: >
      Not evaluated: disk reads are {{ read_bytes_per_second }} (baseline {{ baseline_bytes_per_second }}), and consumer
      group {{ lagging_group }} is {{ longest_lag_seconds }} behind.
    details: ["Bytes by topic were not reported, so how much of the reads that explains is unknown."]
  page_cache_unknown:
    status: unknown
    message: >
      Not evaluated: disk reads are {{ read_bytes_per_second }} (baseline {{ baseline_bytes_per_second }}), but how long
      the page cache holds records is unknown.
    details:
      - "Consumer group {{ lagging_group }} is {{ longest_lag_seconds }} behind."
      - "The memory of the brokers' instances, or their bytes in, were not reported."
  offsets_unknown:
    status: unknown
    message: >
      Not evaluated: disk reads are {{ read_bytes_per_second }} (baseline {{ baseline_bytes_per_second }}), but consumer
      group offsets were not reported.
  remote_reads_unknown:
    status: unknown
    message: >
      Not evaluated: disk reads are {{ read_bytes_per_second }} (baseline {{ baseline_bytes_per_second }}), but remote
      reads of tiered storage were not exposed.
    details:
      - "Consumers that do not commit offsets may read from tiered storage rather than from disk."
      - "Brokers count remote reads as RemoteFetchBytesPerSec (Kafka 3.6 and later)."
  measured_too_late:
    status: unknown
    message: >
      Not evaluated: disk reads were {{ read_bytes_per_second }} (baseline {{ baseline_bytes_per_second }}), but bytes out
      were not measured at that time.
  brokers_no_response:
    status: unknown
    message: >
      Not evaluated: {{ unresponsive_brokers }} of {{ brokers | counted("broker") }} did not respond over JMX.
    details:
      - "Disk reads are {{ read_bytes_per_second }} (baseline {{ baseline_bytes_per_second }})."
description: |
  Consumers near the end of a log are served from the page cache. A disk is read for records that are no longer there.
  Step 1: do the brokers' volumes, one or all of a cluster together, read more than the baseline of the same hour of the
  week? The baseline is the median and deviation of four weeks; with less than three weeks, of all hours. The limit is
  spike_mads deviations and floor_bytes_per_second, for sustained_minutes, or heavy_bytes in total.

  Step 2 compares two amounts over the time that JMX covers. Unexplained are the disk reads beyond the baseline and the
  known readers: groups that lag beyond the page cache or process an older backlog, state store restores, and replica
  catch-up. Unaccounted are the bytes out beyond the progress of committed offsets and beyond the baseline of readers
  without commits. Bytes of a rogue consumer are both, so the smaller amount counts: from rogue_share of the excess on,
  the detector fires.

  The bytes that a group reads follow from its commits. For a group that reads from disk, one step between commits is
  added, and one more for each offset reset to an earlier position. A group that lags and reads nothing explains nothing.

  Each reader is a finding of its own: a group with members and no commit, otherwise the client, where one alone can be the
  reader. Topics without a known reader that begin in the same hour are one finding, named after the topic with most
  unaccounted bytes. A finding keeps its name while it is open.

  Where no topic's bytes are reported (Amazon MSK by CloudWatch alone), the brokers' bytes out stand for them: excess disk
  reads, bytes out beyond their median of baseline_days by rogue_share of these reads, and no group that lags beyond the page
  cache. A group that does may be the reader: then the cluster is not evaluated.

  Reads from tiered storage (KIP-405) are no disk reads. What brokers fetch from it is subtracted from the unaccounted bytes,
  except for the reads of groups that lag beyond a topic's local retention; those explain no disk reads. Where brokers do
  not expose remote reads of a topic with tiered storage, its bytes out alone do not fire.

  The age of the oldest record in the page cache is estimated by adding up the bytes in, hour by hour backwards, until
  they fill page_cache_share of the brokers' memory.
causes:
  cold_reads_starve_disk: [rogue, rogue_by_bandwidth]
  untracked_reads_unbalance_brokers: [rogue]
open_after_hours: 1
clear_after_hours: 2
runbook: |
  ## Meaning
  A consumer that commits no offsets reads records that are no longer in the page cache.

  ## Impact
  The brokers read from disk and evict recent records from the page cache, which slows every consumer of the cluster.

  ## Diagnosis
  1. Check the topics with unaccounted bytes, and ask their owners who is replaying them.
  2. Check the fetch rates per client. Brokers expose them with quotas; a generous default quota is enough. Run
     `kafka-configs.sh --describe --entity-type clients --entity-default` before you set one: it replaces an existing default.
  3. Run kafka-consumer-groups.sh --describe --members for groups without commits.
  4. On the brokers, check the connections with the highest send rate (ss -ti), or the request log for Fetch requests.

  ## Mitigation
  1. Throttle the client: kafka-configs.sh --alter --add-config consumer_byte_rate=… --entity-type clients
     --entity-name <client>. A quota applies per broker.
  2. Serve replays and backfills from another cluster or from tiered storage.
limitations: |
  Amazon MSK by CloudWatch alone: neither topic nor client is known, the mean of the hour hides a reader that is active
  for a few minutes, and only the bytes that are sent distinguish a reader from the brokers' own reads (compaction).

  Kafka does not report clients that read without committing. Topics and amounts are known; the client is known only
  where quotas make brokers expose per-client rates, for an hour after its last request. Its rate is known only if JMX was
  queried while it read. A client that fetches in most hours of a day counts only with the amount above its baseline.

  Two readers that begin in the same hour and are not known are one finding. One that reads a further topic in a later hour
  has a second finding, unless its group or client is known.

  Not detected: readers of records that are still in the page cache, readers that started so long ago that they are part
  of the baseline, and readers with a volume within the variation of a nightly batch. In the first weeks of a cluster,
  readers that read less than groups that always lag are not detected either.

  Bytes out of a changelog beyond the baseline are taken for a restore unless its application has run for settled_hours. A
  known group that is far behind, has members, and has not committed counts as the reader of its topics. So does a group
  that reset its offsets to an earlier position, if the disks were read for at most twice the time between its commits.
  Internal topics are not counted. Rates of JMX and commits are compared over the time that JMX covers.
*/
with disk as materialized (
  select *
  from public.cluster_disk_reads(
    :hour, :spike_mads, :floor_bytes_per_second, :sustained_minutes, :heavy_bytes, :rogue_share
  )
),

-- All bytes below are those of the time that JMX counted.
spike as materialized (
  select
    d.*,
    t.counted_from,
    t.seconds,
    d.counted_excess * t.seconds as excess_bytes,
    d.counted_read * t.seconds as read_bytes,
    d.baseline * t.seconds as baseline_bytes
  from disk as d
  left join public.topic_counted as t on d.cluster = t.cluster and t.hour = :hour
  where d.volumes_above > 0
),

cold_group as (
  select
    s.cluster,
    sum(r.cold_bytes) as cold_group_bytes,
    max(r.lag_seconds) as lag_seconds,
    bool_or(r.is_unknown) as is_unknown,
    json_agg(
      json_build_object(
        'group_id', r.group_id, 'topic', r.topic, 'cold_bytes', r.cold_bytes, 'lag_bytes', r.lag_bytes,
        'rewinds', r.rewinds
      )
      order by r.cold_bytes desc, r.group_id asc, r.topic asc
    ) filter (where r.cold_bytes > 0) as groups
  from spike as s
  cross join lateral public.group_reads(s.cluster, :hour, :page_cache_share, 60 * s.minutes) as r
  group by s.cluster
),

topic as materialized (
  select
    s.cluster,
    t.*
  from spike as s
  cross join lateral public.unaccounted_topics(
    s.cluster, :hour, 60 * s.minutes, :page_cache_share, :baseline_days, :baseline_hours, :settled_hours
  ) as t
),

unaccounted as (
  select
    t.cluster,
    sum(t.restored_bytes) as restored_bytes,
    sum(t.unaccounted_bytes) as unaccounted_bytes,
    sum(t.remote_unknown_bytes) as remote_unknown_bytes,
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
    -- Bytes sent to followers beyond the bytes written.
    select
      greatest(
        b.replicated_bytes_per_second * s.seconds - coalesce(sum(w.bytes_in * (w.replication_factor - 1)), 0), 0
      ) as catching_up_bytes
    from public.topic_bytes as w
    where w.hour = :hour and w.cluster = s.cluster
  ) as r
  where b.hour = :hour
),

-- Bytes of a rogue consumer have no known reader and exceed the baseline or the known disk reads. The baseline of this
-- hour of the week includes a nightly batch; the baseline of all hours does not.
measured_rogue as (
  select
    m.*,
    least(m.unaccounted_bytes, x.bytes) as rogue_bytes,
    least(m.unaccounted_bytes + m.remote_unknown_bytes, x.bytes) as possible_rogue_bytes
  from measured as m
  cross join lateral (
    select
      m.read_bytes - case
        when m.baseline_hours is null then greatest(m.baseline_bytes, m.explained_bytes)
        else m.baseline_bytes + m.explained_bytes
      end as bytes
  ) as x
)

select
  case when v.reason = 'rogue' and not r.is_reading then 'stopped' else v.reason end as reason,
  b.cluster,
  r.group_id,
  r.client_id,
  r.topic,
  case when v.reason = 'rogue' then r.affected else w.affected end as affected,
  w.since,
  w.minutes as minutes_above_baseline,
  w.read as read_bytes_per_second,
  w.baseline as baseline_bytes_per_second,
  w.baseline_hours as baseline_known_hours,
  d.highest as highest_read_bytes_per_second,
  w.excess_bytes / w.seconds as excess_read_bytes_per_second,
  case when v.reason = 'rogue' then r.unaccounted_bytes_per_second else w.unaccounted_bytes / w.seconds end
    as unaccounted_bytes_per_second,
  100 * w.unaccounted_bytes / nullif(w.excess_bytes, 0) as unaccounted_of_excess_percent,
  case when v.reason = 'rogue' then r.unaccounted_topics else w.topics end as unaccounted_topics,
  r.suspect as top_client,
  f.clients as fetching_clients,
  100 * least(w.explained_bytes, w.excess_bytes) / nullif(w.excess_bytes, 0) as explained_percent,
  w.cold_group_bytes / w.seconds as cold_group_bytes_per_second,
  w.restored_bytes / w.seconds as restored_bytes_per_second,
  w.catching_up_bytes / w.seconds as catching_up_bytes_per_second,
  w.groups as groups_reading_cold,
  coalesce(w.lag_seconds, n.longest_lag_seconds) as longest_lag_seconds,
  n.lagging_group,
  n.excess_sent_bytes / 3600 as excess_sent_bytes_per_second,
  n.baseline_sent_bytes_per_second,
  n.cache_seconds,
  k.monitoring_level,
  case when v.reason = 'monitoring_level_too_low' then price.usd end as monitoring_usd_per_month,
  case when v.reason = 'monitoring_level_too_low' then k.broker_count end as monitored_brokers,
  k.region,
  k.cluster_arn,
  k.current_version,
  c.seconds as page_cache_holds_seconds,
  w.seconds as counted_seconds,
  d.volumes as volumes_above_baseline,
  coalesce(d.volumes_known, 0) as volumes_known,
  d.volumes_unknown,
  b.brokers,
  b.brokers_unplaced,
  b.brokers_silent as unresponsive_brokers,
  b.under_replicated_partitions
from public.cluster_brokers as b
left join disk as d using (cluster)
left join measured_rogue as w using (cluster)
left join public.page_cache(:hour, :hour, :page_cache_share) as c using (cluster)
left join public.sent_above_baseline(
  :hour, array(select cluster from spike where seconds is null), :baseline_days, :baseline_hours, :page_cache_share
) as n using (cluster)
left join inventory.msk_cluster_hourly as k on k.hour = :hour and b.cluster = k.cluster
left join lateral inventory.msk_monitoring_price(k.kind, k.instance_type, k.storage_mode, k.broker_count) as price (usd)
  on true
left join lateral public.rogue_clients(w.cluster, :hour, :rogue_share * w.rogue_bytes / w.seconds) as f on true
cross join lateral (
  select
    case
      when d.volumes_known is null then 'no_volumes'
      when d.volumes_unknown = d.volumes_known and k.monitoring_level = 'DEFAULT' then 'monitoring_level_too_low'
      when d.volumes_above = 0 and (d.volumes_unknown > 0 or b.brokers_unplaced > 0) then 'disk_reads_unknown'
      when d.volumes_above = 0 then 'normal'
      when n.cluster is not null
        then case
          when not n.is_lag_known then 'offsets_unknown'
          when n.cache_seconds is null and n.longest_lag_seconds > 0 then 'page_cache_unknown'
          when n.longest_lag_seconds > n.cache_seconds then 'lagging_group_may_explain'
          when (n.excess_sent_bytes >= :rogue_share * (d.read - d.baseline) * d.minutes * 60) is not true
            then 'broker_internal_reads'
          when k.storage_mode = 'TIERED' and not n.is_remote_known then 'remote_reads_unknown'
          else 'rogue_by_bandwidth'
        end
      when w.excess_bytes is null or w.unaccounted_bytes is null then 'bytes_out_unknown'
      when w.offsets_unknown then 'offsets_unknown'
      when w.excess_bytes = 0 then 'measured_too_late'
      when w.rogue_bytes >= :rogue_share * w.excess_bytes then 'rogue'
      when w.possible_rogue_bytes >= :rogue_share * w.excess_bytes then 'remote_reads_unknown'
      when w.counted_from >= w.until then 'measured_too_late'
      when b.brokers_silent > 0 then 'brokers_no_response'
      when w.explained_bytes >= (1 - :rogue_share) * w.excess_bytes then 'explained'
      else 'broker_internal_reads'
    end as reason
) as v
-- Verdicts on a cluster hold for readers that have stopped as well: their tickets close, or stay open while it is unknown.
cross join lateral public.rogue_readers(
  b.cluster, :hour, case when v.reason = 'rogue' then w.topics end, f.top_client, f.suspects, :reader_days
) as r
where b.hour = :hour
order by b.cluster, r.group_id, r.client_id, r.topic

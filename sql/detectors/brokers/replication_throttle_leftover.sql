/*
title: Leftover replication throttle
resource_kind: cluster
owner_role: platform
maturity: stable
reads: [inventory.broker_hourly, inventory.topic_hourly, metrics.replica_sample]
params:
  leftover_hours: {default: 2, unit: h, why: "time to run --verify after a reassignment, which removes its throttle"}
  most_shown: {default: 20, unit: topics, why: "a ticket with more is not read to its end"}
key_metrics: [throttle_bytes_per_second, leftover_seconds, throttled_topics, rated_brokers]
verdicts:
  slows_replication:
    status: firing
    severity: warning
    message: >
      Cluster {{ cluster }} throttles replication to {{ throttle_bytes_per_second }} per broker without a reassignment, for
      at least {{ leftover_seconds }}.
    details:
      - "The throttle applies to replicas of {{ throttled_topics | counted('topic') }}."
    impact: "Replicas that fall behind, such as after a broker restart, catch up at this rate at most."
    actions: &actions
      - "Run kafka-reassign-partitions.sh --verify with the JSON file of the reassignment: it removes the throttle."
      - "Without the file, delete the settings with the commands below."
      - "If the throttle is intended, add an exception for this cluster to the configuration."
    commands: &commands
      - "{% for one in topic_throttles or [] %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --entity-type topics --entity-name {{ one.topic }} --delete-config {{ one.settings }}\n{% endfor %}"
      - "{% for one in broker_throttles or [] if one.broker != 'default' %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --entity-type brokers --entity-name {{ one.broker }} --delete-config {{ one.settings }}\n{% endfor %}"
      - "{% for one in broker_throttles or [] if one.broker == 'default' %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --entity-type brokers --entity-default --delete-config {{ one.settings }}\n{% endfor %}"
  without_effect:
    status: firing
    severity: info
    message: >
      Cluster {{ cluster }} has an incomplete replication throttle without a reassignment, for at least {{ leftover_seconds }}.
    details:
      - >
        {% if throttled_topics %}{{ throttled_topics | counted("topic") }} {{ throttled_topics | plural("lists", "list") }}
        throttled replicas, but their brokers have no throttle rate.{% endif %}
      - >
        {% if not throttled_topics %}{{ rated_brokers | counted("broker") }} {{ rated_brokers | plural("has", "have") }} a
        throttle rate, but no topic lists throttled replicas.{% endif %}
    impact: "None at present; once the other setting is added, replication is throttled unexpectedly."
    actions: *actions
    commands: *commands
  effect_unknown:
    status: firing
    severity: info
    message: >
      Throttled replicas are set on {{ throttled_topics | counted("topic") }} of cluster {{ cluster }} without a
      reassignment, for at least {{ leftover_seconds }}.
    details:
      - "Brokers did not report whether they have a throttle rate for these replicas."
    impact: "If a rate is set, replicas that fall behind catch up at this rate at most."
    actions: *actions
    commands: *commands
  reassignment_running: {status: ok, message: "Partitions of cluster {{ cluster }} are being reassigned: a throttle is in use."}
  recently_used:
    status: ok
    message: "Cluster {{ cluster }} has a replication throttle; a reassignment may have used it within the last {{ leftover_hours }}."
  no_throttle: {status: ok, message: "Cluster {{ cluster }} has no replication throttle."}
  settings_unknown:
    status: unknown
    message: >
      Not evaluated: cluster {{ cluster }} did not report the settings of {{ unknown_topics | counted("topic") }}.
  not_reported: {status: unknown, message: "Not evaluated: cluster {{ cluster }} did not list its partition reassignments."}
open_after_hours: 1
clear_after_hours: 2
description: |
  A replication throttle has two halves: topics name the throttled replicas, and brokers have a rate. The detector fires
  if one of them was set for leftover_hours while no partition was reassigned. If both are set for the same brokers, the
  throttle slows replication, and the finding is a warning; otherwise it is an info.
runbook: |
  ## Meaning
  A reassignment ended, and its replication throttle is still set.
  ## Impact
  Followers that fall behind catch up at the throttled rate at most. After a broker restart, partitions stay
  under-replicated for longer.
  ## Diagnosis
  1. Check which topics and brokers have throttle settings (metrics `topic_throttles`, `broker_throttles`).
  2. Find who set them: the last reassignment, Cruise Control, or an administrator on purpose.
  ## Mitigation
  1. Run kafka-reassign-partitions.sh --verify with the JSON file of the reassignment.
  2. Without the file, delete the settings with kafka-configs.sh.
  3. If the throttle is intended, add an exception to the configuration.
limitations: |
  Reassignments are listed once an hour; one that began and ended between two runs is not known. A throttle for moves
  between log directories counts only if no replica is moving between directories in the hour.
*/
-- Topics that name throttled replicas, in this hour and in those before.
with named as materialized (
  select
    hour,
    cluster,
    topic,
    leader_throttled_replicas,
    follower_throttled_replicas
  from inventory.topic_hourly
  where hour >= :hour - make_interval(hours => cast(:leftover_hours as integer))
  and hour <= :hour
  and (leader_throttled_replicas is not null or follower_throttled_replicas is not null)
),

cluster as materialized (
  select
    b.cluster,
    bool_or(b.adding_replicas is not null) as is_reported,
    bool_or(b.adding_replicas > 0) as is_running,
    bool_or(b.throttles <> '{}') or b.cluster in (select n.cluster from named as n) as has_settings,
    bool_and(b.throttles is not null) filter (where b.is_listed) as is_rate_reported
  from inventory.broker_hourly as b
  where b.hour = :hour
  group by b.cluster
),

past as materialized (
  select p.*
  from public.reassignment_hours(
    array(select c.cluster from cluster as c where c.has_settings),
    cast(:hour as timestamptz) - interval '336 hours', :hour
  ) as p
),

leftover as (
  select
    cluster,
    count(*) filter (where is_reported and not is_running) > :leftover_hours as is_unused,
    count(*) filter (where has_rates) > :leftover_hours as has_leftover_rates
  from past
  where hour >= :hour - make_interval(hours => cast(:leftover_hours as integer))
  group by cluster
),

rate as materialized (
  select *
  from public.throttle_rates(:hour)
),

-- Topics that were named in all of these hours, and the brokers that have a rate for these replicas.
leftover_topic as materialized (
  select
    cluster,
    topic,
    max(leader_throttled_replicas) as leader_replicas,
    max(follower_throttled_replicas) as follower_replicas
  from named
  group by cluster, topic
  having count(*) > :leftover_hours
),

slowed as (
  select
    n.cluster,
    min(r.bytes_per_second) as throttle_bytes_per_second
  from (
    select
      t.cluster,
      o.role || '.replication.throttled.rate' as setting,
      case when o.replicas <> '*' then split_part(e.replica, ':', 2) end as broker_id
    from leftover_topic as t
    cross join lateral (values ('leader', t.leader_replicas), ('follower', t.follower_replicas)) as o (role, replicas)
    cross join lateral string_to_table(o.replicas, ',') as e (replica)
  ) as n
  inner join rate as r
    on n.cluster = r.cluster and n.setting = r.setting and (n.broker_id is null or n.broker_id = cast(r.broker_id as text))
  group by n.cluster
),

-- Both as the commands need them.
by_topic as (
  select
    cluster,
    count(*) as throttled_topics,
    jsonb_agg(
      jsonb_build_object(
        'topic', topic, 'settings', concat_ws(
          ',', case when leader_replicas is not null then 'leader.replication.throttled.replicas' end,
          case when follower_replicas is not null then 'follower.replication.throttled.replicas' end
        )
      ) order by topic
    ) filter (where place <= :most_shown) as topic_throttles
  from (
    select
      *,
      row_number() over (partition by cluster order by topic asc) as place
    from leftover_topic
  ) as placed
  group by cluster
),

by_broker as (
  select
    cluster,
    count(*) as rated_brokers,
    jsonb_agg(jsonb_build_object('broker', broker, 'settings', settings) order by broker) as broker_throttles
  from (
    select
      cluster,
      broker,
      string_agg(distinct setting, ',' order by setting) as settings
    from (
      select
        r.cluster,
        r.setting,
        case when r.is_cluster_default then 'default' else cast(r.broker_id as text) end as broker
      from rate as r
      -- Replicas may be moving between directories of a broker.
      where r.setting <> 'replica.alter.log.dirs.io.max.bytes.per.second' or not exists (
        select 1 from metrics.replica_sample as f
        where f.hour = :hour and f.cluster = r.cluster and f.is_future
      )
    ) as named_broker
    group by cluster, broker
  ) as one
  group by cluster
),

unknown_topic as (
  select
    cluster,
    count(*) as unknown_topics
  from inventory.topic_hourly
  where hour = :hour and configs is null
  group by cluster
),

throttled_hour as (
  select distinct
    hour,
    cluster
  from inventory.topic_hourly
  where hour > :hour - interval '336 hours' and hour <= :hour
  and (leader_throttled_replicas is not null or follower_throttled_replicas is not null)
  and cluster = any(array(select c.cluster from cluster as c where c.has_settings))
),

-- For how long a throttle was set and nothing was reassigned, hour by hour.
lasting as (
  select
    p.cluster,
    cast(extract(epoch from :hour - min(p.hour)) as double precision) as leftover_seconds
  from past as p
  where p.hour > coalesce(
    (
      select max(f.hour)
      from past as f
      left join throttled_hour as t using (hour, cluster)
      where f.cluster = p.cluster and (f.is_running or not f.is_reported or (not f.has_rates and t.cluster is null))
    ), '-infinity'
  )
  group by p.cluster
)

select
  case
    when not c.is_reported then 'not_reported'
    when c.is_running then 'reassignment_running'
    when l.is_unused and s.throttle_bytes_per_second is not null then 'slows_replication'
    when l.is_unused and t.cluster is not null and c.is_rate_reported is not true then 'effect_unknown'
    when l.is_unused and (t.cluster is not null or (l.has_leftover_rates and b.cluster is not null)) then 'without_effect'
    when u.cluster is not null then 'settings_unknown'
    when b.cluster is not null or c.cluster in (select n.cluster from named as n where n.hour = :hour) then 'recently_used'
    else 'no_throttle'
  end as reason,
  c.cluster,
  s.throttle_bytes_per_second,
  t.throttled_topics,
  t.topic_throttles,
  b.rated_brokers,
  b.broker_throttles,
  d.leftover_seconds,
  u.unknown_topics
from cluster as c
left join leftover as l using (cluster)
left join slowed as s using (cluster)
left join by_topic as t using (cluster)
left join by_broker as b using (cluster)
left join unknown_topic as u using (cluster)
left join lasting as d using (cluster)

/*
title: Topics keep their records much longer than anybody reads them
resource_kind: cluster
owner_role: platform
maturity: stable
reads: [inventory.topic_hourly, metrics.consumer_group_hourly, metrics.consumer_partition_hourly, metrics.replica_sample, metrics.topic_hourly]
params:
  min_bytes: {default: 53687091200, unit: bytes, why: "50 GiB of one topic, all replicas: less isn't worth an owner's hour"}
  kept_over_needed: {default: 5, unit: ratio, why: "below it is headroom, not waste"}
  days: {default: 30, unit: d, why: "monthly readers are seen once"}
  least_seconds: {default: 86400, unit: seconds, why: "also a reader that always keeps up must be mended before its records are gone"}
  keep: {default: "", unit: regex, why: "topics that law or event sourcing keeps; empty: none"}
  most_shown: {default: 20, unit: topics, why: "the view topics_retention has them all"}
key_metrics: [saved_bytes, saved_usd_per_month, overkept_topics, first_kept_seconds, first_needed_seconds]
verdicts:
  wasteful:
    status: firing
    severity: info
    message: "{{ overkept_topics | counted('topic') }} {{ 'keeps' if overkept_topics == 1 else 'keep' }} records at least {{ kept_over_needed.value }} times as long as any group needed them in {{ days.value }} days: {{ saved_bytes }}{% if saved_usd_per_month %}, {{ saved_usd_per_month }}{% endif %} could go. {{ first_topic }} keeps {{ first_kept_seconds }}; {{ first_needed_seconds }} would do."
    actions:
      - "Ask each owner what else the records are kept for; if nothing, lower retention.ms to what its readers need to be mended after a long weekend."
    commands: ["kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --entity-type topics --entity-name {{ first_topic }} --add-config retention.ms={{ first_advised_ms }}"]
  fitting: {status: ok, message: "No topic of size keeps its records {{ kept_over_needed.value }} times as long as its readers need them."}
  unknown: {status: unknown, message: "Of {{ unknown_topics }} of {{ large_topics }} large topics the retention, the traffic or the lag of their readers isn't known."}
  young: {status: unknown, message: "Its groups are known of less than {{ days.value }} days."}
open_after_hours: 24
clear_after_hours: 24
description: |
  Plain topics that are deleted by time. Needed is the largest lag in time that any group which reads the topic had in
  `days`, plus an hour, and least_seconds at least. Wasteful: retention.ms is kept_over_needed times that or more, and
  what is kept beyond it takes min_bytes.
runbook: |
  1. The view topics_retention has all of them, with owner, kept, needed, bytes and price.
  2. Records are also kept for new readers that begin at the start, and for repairs after a faulty release: ask.
  3. Name what must stay in `keep`.
limitations: |
  Readers that come once a quarter, readers without groups, and new groups that read all of a topic within an hour. A
  group's lag is that of its worst topic, so topics that a group reads beside a late one are spared. Topics without an
  end (retention.ms -1), compacted ones, those bound by size, and those nobody reads aren't judged here.
*/
with topic as (
  select
    *,
    case
      when saved_bytes is not null
        then row_number() over (partition by cluster order by saved_bytes desc nulls last, topic asc)
    end as place
  from public.topics_by_retention(:hour, :days, :least_seconds, :kept_over_needed, :min_bytes, :keep)
),

summary as (
  select
    cluster,
    bool_or(cluster_was_there) as was_there,
    count(place) as overkept_topics,
    sum(saved_bytes) as saved_bytes,
    sum(saved_usd_per_month) as saved_usd_per_month,
    count(*) filter (where is_judged) as large_topics,
    count(*) filter (where is_judged and not is_known) as unknown_topics,
    json_agg(
      json_build_object(
        'topic', topic, 'owner', owner, 'kept_seconds', kept_seconds, 'needed_seconds', needed_seconds,
        'saved_bytes', saved_bytes, 'saved_usd_per_month', saved_usd_per_month, 'groups', groups
      ) order by place
    ) filter (where place <= :most_shown) as worst_topics,
    jsonb_agg(public.resource_key('topic', cluster, topic) order by place) filter (where place <= :most_shown) as affected
  from topic
  group by cluster
)

select
  case
    when not was_there then 'young'
    when overkept_topics > 0 then 'wasteful'
    when unknown_topics > 0 then 'unknown'
    else 'fitting'
  end as reason,
  cluster,
  saved_bytes,
  saved_usd_per_month,
  overkept_topics,
  first.topic as first_topic,
  first.kept_seconds as first_kept_seconds,
  first.needed_seconds as first_needed_seconds,
  (ceil(first.needed_seconds * 2 / 3600) * 3600000)::bigint as first_advised_ms,
  large_topics,
  unknown_topics,
  worst_topics,
  affected
from summary
left join json_to_record(worst_topics -> 0)
  as first (topic text, kept_seconds double precision, needed_seconds double precision) on true

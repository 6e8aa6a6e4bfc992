/*
title: Message size increase
resource_kind: topic
owner_role: platform
maturity: stable
reads: [metrics.topic_hourly, inventory.topic_hourly, inventory.schema_hourly, metrics.client_topic_hourly]
params:
  jump_ratio:
    default: 1.5
    unit: ratio
    why: "half as much again on disks, network, and in consumers' memory; less is one new field"
  mads: {default: 6, unit: MAD, why: "changes within six deviations of the baseline are noise"}
  trend_ratio: {default: 1.25, unit: ratio, why: "a quarter more within two weeks doubles the size within seven weeks"}
  trend_days: {default: 14, unit: d, why: "two weekly cycles"}
  least_trend_days: {default: 12, unit: d, why: "of trend_days; a slope over fewer days follows one weekend"}
  rising: {default: 0.75, unit: ratio, why: "share of days larger than the day before; one jump is not a trend"}
  min_messages: {default: 10000, unit: messages, why: "per hour: the mean of fewer messages is random"}
  min_bytes: {default: 10485760, unit: bytes, why: "per hour: less costs nothing"}
  least_history: {default: 168, unit: h, why: "one week covers every recurring mix of messages"}
key_metrics: [message_bytes, baseline_message_bytes, extra_bytes_per_second, kept_bytes, usd_per_month]
verdicts:
  jumped:
    status: firing
    severity: warning
    message: >-
      Messages of topic {{ topic }} have a mean size of {{ message_bytes }} (baseline {{ baseline_message_bytes }})
      since {{ since }}.
    details:
      - >-
        The baseline is the median of
        {{ "this hour of the week" if baseline_kind == "hour_of_week" else "the hours before" }}.
      - >-
        {% if extra_bytes_per_second %}Replicas and consumers transfer {{ extra_bytes_per_second }} more than
        before.{% endif %}
      - "{% if new_schema_versions %}New schema versions since then: {{ new_schema_versions }}.{% endif %}"
      - >-
        {% if compression_before and compression != compression_before %}The topic's compression.type changed from
        {{ compression_before }} to {{ compression }}.{% endif %}
    impact: &impact "Disks, network, and consumers' memory carry more per message; the retained log grows accordingly."
    actions:
      - &owner >-
        {% if producers %}Ask {{ producers | map(attribute="app") | unique | join(", ") }}, the producers of
        {{ topic }}, what changed in the messages.{% endif %}
      - &unknown_owner >-
        {% if not producers %}Ask the owner of {{ topic }} which producer changed its messages.{% endif %}
      - "If the change is intended, check disk space and retention. If not, roll it back."
    commands: &commands
      - >-
        kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --describe --entity-type topics
        --entity-name {{ topic }}
  grew:
    status: firing
    severity: warning
    message: >-
      Messages of topic {{ topic }} grew from {{ trend_from_bytes }} to {{ trend_to_bytes }} within
      {{ trend_days }}; the mean size is {{ message_bytes }} now.
    impact: *impact
    actions:
      - *owner
      - *unknown_owner
      - >-
        Find the field that only grows: a list, a history, or a map with ever more keys.
        Limit it or move it out of the message.
    commands: *commands
  less_traffic:
    status: ok
    message: >-
      Topic {{ topic }} received {{ messages }} messages (baseline {{ baseline_messages }}); sizes are not compared,
      because smaller batches compress worse.
  stable: {status: ok, message: "Messages of topic {{ topic }} have a mean size of {{ message_bytes }}, as in earlier hours."}
  insufficient_traffic:
    status: unknown
    message: >-
      Not applicable: topic {{ topic }} received fewer than {{ min_messages.value }} messages or less than
      {{ min_bytes }} in the hour.
    is_not_applicable: true
  insufficient_history:
    status: unknown
    message: "Not evaluated: the message size of topic {{ topic }} was reported for {{ known_hours }} only."
  not_reported:
    status: unknown
    message: "Not evaluated: brokers did not report incoming messages and bytes of topic {{ topic }} over JMX."
open_after_hours: 3
clear_after_hours: 3
description: |
  Fires on a jump: bytes per message are at least jump_ratio times the baseline and more than mads deviations above it.
  The baseline is the largest of this hour of the week and its neighbors, because a batch may start an hour earlier or
  later (daylight saving time, for example).
  Fires on a trend: the Theil-Sen slope over the daily medians of trend_days makes messages trend_ratio times as large,
  and most days are larger than the day before.
  Hours with less than half of the baseline's messages are not compared.
runbook: |
  ## Meaning
  The mean size of this topic's messages increased, suddenly or day by day.
  ## Impact
  More disk, network, and memory per message: for brokers (times the replication factor) and for every consumer.
  ## Diagnosis
  1. Compare the start with the releases of the producers; new schema versions and a new compression.type are listed.
  2. Check compression: producers that stop compressing cause the same symptom.
  3. Estimate the cost: extra bytes, times replicas and consumers, times retention.
  ## Mitigation
  1. Roll back the producer, or enable compression again.
  2. If the change is intended, check disk space and shorten the retention.
limitations: |
  Bytes are measured on the wire: compressed, in batches. If one of two applications that produce to a topic stops, the
  mean changes although no message does. Only producers' own metrics identify the producer; they do not include sizes
  before compression. Trends over months are slower than trend_days can show.
*/
with topic as materialized (
  select
    *,
    past_hours is not null as is_larger
  from public.message_sizes(:hour, :min_messages, :min_bytes, least(:jump_ratio, :trend_ratio))
),

-- Only topics with messages larger than in some hour before.
larger as materialized (
  select
    cluster,
    topic,
    one.hour,
    one.message_bytes
  from topic
  cross join lateral unnest(
    array_append(past_hours, :hour), array_append(past_message_bytes, message_bytes)
  ) as one (hour, message_bytes)
  where is_larger
),

daily as (
  select
    cluster,
    topic,
    day,
    median,
    median > lag(median) over (partition by cluster, topic order by day) as is_larger
  from (
    select
      cluster,
      topic,
      date_bin('1 day', hour, :hour + interval '1 hour') as day,
      percentile_cont(0.5) within group (order by message_bytes) as median
    from larger
    where message_bytes is not null and hour > :hour - make_interval(days => :trend_days)
    group by cluster, topic, day
  ) as d
),

trend as (
  select
    cluster,
    topic,
    count(*) filter (where is_larger) >= :rising * count(is_larger) and count(*) >= :least_trend_days as is_rising,
    percentile_cont(0.5) within group (order by median) as middle,
    public.theil_sen(array_agg(day), array_agg(median)) * 12 * (:trend_days - 1) as half
  from daily
  group by cluster, topic
),

-- Each call takes a tenth of a millisecond: only for topics that can still fire.
baseline as materialized (
  select
    s.*,
    size.median,
    size.mad,
    size.kind
  from topic as s
  cross join lateral public.topic_baseline(:hour, s.past_hours, s.past_message_bytes, cast(:least_history as integer)) as size
  where s.is_larger
),

jumped as (
  select b.cluster, b.topic
  from baseline as b
  cross join lateral public.topic_baseline(
    :hour - interval '1 hour', b.past_hours, b.past_message_bytes, cast(:least_history as integer)
  ) as earlier
  cross join lateral public.topic_baseline(
    :hour + interval '1 hour', b.past_hours, b.past_message_bytes, cast(:least_history as integer)
  ) as later
  where b.message_bytes >= :jump_ratio * b.median and b.message_bytes > b.median + :mads * b.mad
  and b.message_bytes >= :jump_ratio * greatest(earlier.median, later.median)
),

grown as materialized (
  select
    b.*,
    traffic.median as baseline_messages,
    j.topic is not null as has_jumped
  from baseline as b
  left join jumped as j using (cluster, topic)
  left join trend as t using (cluster, topic)
  cross join lateral public.topic_baseline(:hour, b.past_hours, b.past_messages, cast(:least_history as integer)) as traffic
  where j.topic is not null or t.is_rising and t.middle + t.half >= :trend_ratio * (t.middle - t.half)
),

-- The last hour with messages nearer to the baseline than to the present size.
changed as (
  select
    g.cluster,
    g.topic,
    max(s.hour) as before
  from grown as g
  inner join larger as s using (cluster, topic)
  where g.has_jumped and s.message_bytes < (g.median + g.message_bytes) / 2
  group by g.cluster, g.topic
),

versions as (
  select
    c.cluster,
    c.topic,
    string_agg(new.version::text, ', ' order by new.version) as new_schema_versions
  from changed as c
  inner join inventory.schema_hourly as new
    on c.cluster = new.cluster and c.topic || '-value' = new.subject and new.hour = :hour
  where new.version > (
    select max(old.version) from inventory.schema_hourly as old
    where old.hour = c.before and old.cluster = c.cluster and old.subject = new.subject
  )
  group by c.cluster, c.topic
),

producer as (
  select
    cluster,
    topic,
    jsonb_agg(
      jsonb_build_object(
        'app', app, 'client_id', client_id, 'message_bytes', message_bytes, 'bytes_per_second', bytes_per_second
      ) order by place
    ) as producers
  from (
    select
      p.cluster,
      p.topic,
      p.app,
      p.client_id,
      sum(p.bytes) / sum(p.records) as message_bytes,
      sum(p.bytes / p.covered_seconds) as bytes_per_second,
      row_number() over (
        partition by p.cluster, p.topic order by sum(p.bytes / p.covered_seconds) desc, p.app asc, p.client_id asc
      ) as place
    from grown
    inner join metrics.client_topic_hourly as p using (cluster, topic)
    where p.hour = :hour and p.kind = 'producer' and p.records > 0 and p.bytes > 0
    group by p.cluster, p.topic, p.app, p.client_id
  ) as one
  where place <= 3
  group by cluster, topic
)

select
  case
    when t.messages is null or t.bytes_per_second is null then 'not_reported'
    when t.message_bytes is null then 'insufficient_traffic'
    when t.known_hours < :least_history then 'insufficient_history'
    when t.messages * 2 < g.baseline_messages then 'less_traffic'
    when g.has_jumped then 'jumped'
    when g.topic is not null then 'grew'
    else 'stable'
  end as reason,
  t.cluster,
  t.topic,
  t.message_bytes,
  b.median as baseline_message_bytes,
  b.kind as baseline_kind,
  t.known_hours,
  extra.bytes_per_second * (i.replication_factor + t.readers) as extra_bytes_per_second,
  kept.bytes as kept_bytes,
  kept.bytes / power(1024, 3) * price.usd_per_gib as usd_per_month,
  i.replication_factor as replicas,
  t.readers,
  c.before + interval '1 hour' as since,
  v.new_schema_versions,
  i.configs #>> '{compression.type,value}' as compression,
  i_before.configs #>> '{compression.type,value}' as compression_before,
  trend.middle - trend.half as trend_from_bytes,
  trend.middle + trend.half as trend_to_bytes,
  t.messages,
  g.baseline_messages,
  p.producers
from topic as t
left join baseline as b using (cluster, topic)
left join grown as g using (cluster, topic)
left join trend using (cluster, topic)
left join changed as c using (cluster, topic)
left join versions as v using (cluster, topic)
left join producer as p using (cluster, topic)
left join inventory.topic_hourly as i on t.cluster = i.cluster and t.topic = i.topic and i.hour = :hour
left join inventory.topic_hourly as i_before
  on c.before = i_before.hour and t.cluster = i_before.cluster and t.topic = i_before.topic
left join inventory.broker_storage_price(:hour) as price on t.cluster = price.cluster
cross join lateral (
  select (1 - b.median / t.message_bytes) * t.bytes_per_second as bytes_per_second
) as extra
left join lateral (
  select extra.bytes_per_second * i.replication_factor * i.retention_ms / 1000 as bytes
  where i.cleanup_policy = 'delete' and i.retention_ms <> -1
) as kept on true

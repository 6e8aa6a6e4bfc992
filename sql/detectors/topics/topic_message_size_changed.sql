/*
title: Messages of a topic have become larger
resource_kind: topic
owner_role: platform
maturity: stable
reads: [metrics.topic_hourly, inventory.topic_hourly, inventory.schema_hourly, metrics.client_topic_hourly]
params:
  jump_ratio: {default: 1.5, unit: ratio, why: "half as much again on disks, network and in readers' memory; less is a new field"}
  mads: {default: 6, unit: MAD, why: "what lies within six deviations of its usual is its noise"}
  trend_ratio: {default: 1.25, unit: ratio, why: "a quarter more within two weeks doubles it within seven"}
  trend_days: {default: 14, unit: d, why: "two weekly rhythms"}
  least_trend_days: {default: 12, unit: d, why: "of these; a slope over fewer follows one weekend"}
  rising: {default: 0.75, unit: ratio, why: "of the days must be larger than the day before: one jump isn't a trend"}
  min_messages: {default: 10000, unit: messages, why: "an hour: the mean of fewer is chance"}
  min_bytes: {default: 10485760, unit: bytes, why: "an hour: what is less costs nothing"}
  least_history: {default: 168, unit: h, why: "a week has every hour that is another mix by habit"}
key_metrics: [message_bytes, usual_message_bytes, extra_bytes_per_second, kept_bytes, usd_per_month]
verdicts:
  jumped:
    status: firing
    severity: warning
    message: "A message of {{ topic }} takes {{ message_bytes }}, {{ usual_message_bytes }} {{ 'at this hour of the week' if usual_kind == 'hour_of_week' else 'in the hours before' }}{% if extra_bytes_per_second %}: {{ extra_bytes_per_second }} more for brokers and readers{% endif %}, since {{ since }}.{% if compression_before and compression != compression_before %} compression.type is {{ compression }}, before it was {{ compression_before }}.{% endif %}"
    actions:
      - &cure "Ask {% if producers %}{{ producers | map(attribute='app') | unique | join(', ') }}{% else %}who produces it{% endif %} what was added to the messages then{% if new_schema_versions %}: the registry has new versions of its schema since ({{ new_schema_versions }}){% endif %}. If it is meant to be so, check disks and retention; else take it back."
    commands: &commands ["kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --describe --entity-type topics --entity-name {{ topic }}"]
  grew:
    status: firing
    severity: warning
    message: "Messages of {{ topic }} grow day by day: from {{ trend_from_bytes }} to {{ trend_to_bytes }} within {{ trend_days.value }} days; a message takes {{ message_bytes }} now."
    actions:
      - "Something is appended to each message that is never removed: a list, a history, a map with ever more keys. Ask {% if producers %}{{ producers | map(attribute='app') | unique | join(', ') }}{% else %}who produces it{% endif %}."
    commands: *commands
  less_traffic: {status: ok, message: "{{ messages }} messages came, {{ usual_messages }} are usual: smaller batches compress worse, so that their size isn't compared."}
  usual: {status: ok, message: "A message takes {{ message_bytes }}{% if usual_message_bytes %}; {{ usual_message_bytes }} are usual{% else %}, no more than in other hours{% endif %}."}
  few: {status: unknown, message: "Fewer than {{ min_messages.value }} messages or {{ min_bytes }} came in the hour: their mean is chance.", is_not_applicable: true}
  short_history: {status: unknown, message: "The size of its messages is known of only {{ known_hours }}."}
  uncounted: {status: unknown, message: "JMX did not tell what came in."}
open_after_hours: 3
clear_after_hours: 3
description: |
  Bytes per message are jump_ratio times their usual or more, and more than mads deviations above it; usual is the largest
  of this hour of the week and the hours beside it, as a batch may come an hour earlier or later (in summer, say). Or the
  Theil-Sen slope over the daily medians of trend_days makes them trend_ratio times as large, and most days are larger
  than the day before. Only with at least half of the usual number of messages.
runbook: |
  1. Since when, and which producer was released then? New versions of the schema and a changed compression.type are named.
  2. Is it compression? Producers that compress (compression.type of the producer) and stop look just so.
  3. What it costs: extra bytes times replicas and readers, and what the retention keeps of it.
limitations: |
  Bytes are those on the wire: compressed, in batches. A topic that two applications write, one of which falls silent, has
  another mean though no message changed. Which producer it was isn't known without producers' own metrics, which don't
  tell what a message took before it was compressed. A trend over months is slower than trend_days see.
*/
with topic as materialized (
  select
    *,
    past_hours is not null as is_larger
  from public.message_sizes(:hour, :min_messages, :min_bytes, least(:jump_ratio, :trend_ratio))
),

-- Only of topics whose messages are larger than in some hour before.
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

-- Each call takes a tenth of a millisecond: only of topics that what is known so far doesn't clear.
usual as materialized (
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
  select u.cluster, u.topic
  from usual as u
  cross join lateral public.topic_baseline(
    :hour - interval '1 hour', u.past_hours, u.past_message_bytes, cast(:least_history as integer)
  ) as earlier
  cross join lateral public.topic_baseline(
    :hour + interval '1 hour', u.past_hours, u.past_message_bytes, cast(:least_history as integer)
  ) as later
  where u.message_bytes >= :jump_ratio * u.median and u.message_bytes > u.median + :mads * u.mad
  and u.message_bytes >= :jump_ratio * greatest(earlier.median, later.median)
),

grown as materialized (
  select
    u.*,
    traffic.median as usual_messages,
    j.topic is not null as has_jumped
  from usual as u
  left join jumped as j using (cluster, topic)
  left join trend as t using (cluster, topic)
  cross join lateral public.topic_baseline(:hour, u.past_hours, u.past_messages, cast(:least_history as integer)) as traffic
  where j.topic is not null or t.is_rising and t.middle + t.half >= :trend_ratio * (t.middle - t.half)
),

-- The hour before the first of those that are nearer to what is now than to what was usual.
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
    when t.messages is null or t.bytes_per_second is null then 'uncounted'
    when t.message_bytes is null then 'few'
    when t.known_hours < :least_history then 'short_history'
    when t.messages * 2 < g.usual_messages then 'less_traffic'
    when g.has_jumped then 'jumped'
    when g.topic is not null then 'grew'
    else 'usual'
  end as reason,
  t.cluster,
  t.topic,
  t.message_bytes,
  u.median as usual_message_bytes,
  u.kind as usual_kind,
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
  g.usual_messages,
  p.producers
from topic as t
left join usual as u using (cluster, topic)
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
  select (1 - u.median / t.message_bytes) * t.bytes_per_second as bytes_per_second
) as extra
left join lateral (
  select extra.bytes_per_second * i.replication_factor * i.retention_ms / 1000 as bytes
  where i.cleanup_policy = 'delete' and i.retention_ms <> -1
) as kept on true

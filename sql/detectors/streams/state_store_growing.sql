/*
title: A state store grows without an end
about: store
owner: application
maturity: stable
reads: [metrics.state_store_memory_hourly, metrics.jvm_app_hourly]
params:
  days: {default: 8, unit: d, why: "a week's rhythm and the day that it is compared with"}
  least_days: {default: 7, unit: d, why: "fewer are a rhythm, not growth"}
  bytes_per_day: {default: 134217728, unit: bytes, why: "128 MiB a day: 47 GiB a year; less outgrows nothing soon"}
  daily_growth: {default: 0.01, unit: ratio, why: "of its size a day: it doubles within 100 days"}
  rising: {default: 0.75, unit: ratio, why: "of its days must be larger than the day before: one jump isn't growth"}
  fallen: {default: 0.5, unit: ratio, why: "a store that lost half within a day was reset, and fills again"}
convinces: [growth_bytes, store_bytes, doubles_in_days, growth_keys_per_day, store_keys]
says:
  grows:
    status: alarm
    severity: info
    reason: "The store {{ store }} grows by {{ growth_bytes }} a day{% if growth_keys_per_day > 0 %} and {{ growth_keys_per_day }} keys{% endif %}, now {{ store_bytes }}: in {{ doubles_in_days }} it is twice as large."
    cure: "{% if growth_keys_per_day > 0 %}Keys come and none go: delete old ones by a punctuation, or use a windowed store; its changelog then wants cleanup.policy compact,delete.{% else %}The number of its keys doesn't grow, their values do: look at what is appended to them.{% endif %}"
  steady: {status: ok, reason: "The store {{ store }} doesn't grow by much: {{ store_bytes }}."}
  windowed: {status: ok, reason: "The store {{ store }} is windowed: its retention bounds it."}
  fell: {status: skip, reason: "The store {{ store }} lost much of its size within a day: it was reset or restored.", nothing_to_judge: true}
  short: {status: skip, reason: "The size of the store {{ store }} is known of only {{ known_days }} with as many tasks as now."}
open_after_hours: 24
clear_after_hours: 24
rule: |
  The Theil-Sen slope of the store's daily medians of total-sst-files-size, summed over all processes, is bytes_per_day
  or more and daily_growth of its size, and most of its days are larger than the day before. Days with another number of
  tasks don't count.
runbook: |
  1. Do keys grow with it? Then nothing removes them: a TTL by punctuation, or a windowed store.
  2. Only bytes grow: values do. Drop fields, or keep lists elsewhere.
  3. When the disk ends, and how long a restore takes, follow from its size: see the machine's file system.
blind_spots: |
  When disk or memory end isn't told here: how large and how full file systems are isn't gathered yet. Keys are
  RocksDB's estimate, and compaction moves sizes by steps. In-memory stores tell no size. Windowed stores are taken as
  bounded, also those whose input grows.
*/
with held as (
  select distinct
    m.cluster,
    p.application_id,
    m.store,
    m.kind
  from metrics.state_store_memory_hourly as m
  inner join metrics.jvm_app_hourly as p using (hour, cluster, app, endpoint)
  where m.hour = cast(:hour as timestamptz) and p.application_id is not null
)

select
  case
    when h.kind <> 'key_value' then 'windowed'
    when g.known_days is null or g.known_days < :least_days or g.bytes_per_day is null then 'short'
    when g.most_fallen_ratio >= :fallen then 'fell'
    when
      g.bytes_per_day >= greatest(:bytes_per_day, :daily_growth * g.sst_bytes)
      and g.rising_days >= :rising * (g.known_days - 1)
      then 'grows'
    else 'steady'
  end as because,
  cluster,
  h.application_id || '-' || h.store || '-changelog' as topic,
  h.application_id,
  h.store,
  g.bytes_per_day as growth_bytes,
  g.sst_bytes as store_bytes,
  g.sst_bytes / nullif(greatest(g.bytes_per_day, 0), 0) as doubles_in_days,
  g.keys_per_day as growth_keys_per_day,
  g.keys as store_keys,
  coalesce(g.known_days, 0) as known_days
from held as h
left join public.store_growth(cast(:hour as timestamptz), :days) as g using (cluster, application_id, store)

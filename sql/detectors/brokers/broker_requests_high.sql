/*
title: Produce request rate above broker capacity
resource_kind: broker
owner_role: platform
maturity: stable
reads: [metrics.broker_hourly, metrics.broker_topic_sample, metrics.client_hourly, inventory.broker_hourly]
params:
  produce_per_second:
    default: 4000
    unit: 1/s
    why: "above it latencies rose on brokers with eight vCPUs; a capacity learned from 14 days replaces it"
  least_knee:
    default: 1000
    unit: 1/s
    why: "even a broker with two vCPUs handles this many: a lower rate does not make it slow"
  slow_ratio: {default: 2, unit: ratio, why: "producers notice when they wait twice as long"}
  knee_hours: {default: 6, unit: h, why: "fewer slow hours are an incident"}
  knee_share: {default: 0.8, unit: ratio, why: "if so many of the hours with as many requests were slow, requests are the reason"}
  cpu_ratio: {default: 0.8, unit: ratio, why: "of all vCPUs, as the mean of an hour: some of its minutes are at the limit"}
  handlers_idle_ratio: {default: 0.3, unit: ratio, why: "Kafka's monitoring page recommends at least 30 % idle request handlers"}
  hours: {default: 2, unit: h, why: "in a row: a batch or a restart ends sooner"}
  peak_hours: {default: 8, unit: h, why: "per day: a nightly batch lasts no longer; what does is the broker's normal load"}
  peak_ratio: {default: 1.25, unit: ratio, why: "a peak that grew by more is not the recurring one"}
  least_history: {default: 168, unit: h, why: "a week contains every hour that is regularly busy"}
  batch_bytes: {default: 16384, unit: bytes, why: "the default batch.size of producers"}
key_metrics: [produce_requests_per_second, capacity_per_second, request_bytes, cpu_ratio_mean, handlers_idle_min_ratio]
verdicts:
  high:
    status: firing
    severity: warning
    message: >
      Produce request rate of broker {{ broker_id }} is {{ produce_requests_per_second }} (capacity
      {{ capacity_per_second }}), above capacity in {{ busy_hours }} of the last 24.
    details:
      - >
        {% if is_learned %}From {{ capacity_per_second }} on, produce latency (p99) exceeded {{ slow_ratio }} of its median
        in most hours of the last 14 days.{% endif %}
      - "{% if not is_learned %}The last 14 days show no rate at which latency rises, so the default capacity applies.{% endif %}"
      - "{% if cpu_ratio_mean >= 0 %}CPU utilization is {{ cpu_ratio_mean }}.{% endif %}"
      - "{% if handlers_idle_min_ratio >= 0 %}Request handlers are idle for {{ handlers_idle_min_ratio }} of the time.{% endif %}"
      - "{% if request_bytes %}A produce request has {{ request_bytes }} on average.{% endif %}"
      - "{% if can_batch %}In batches of {{ batch_bytes }}, the same bytes need {{ batched_requests_per_second }}.{% endif %}"
      - >
        {% for one in producers or [] %}Producers of {{ one.app }} send batches of {{ one.batch_bytes }} after
        {{ one.queue_ms }} at {{ one.requests_per_second }}. {% endfor %}
      - "{% if topics %}Most produce requests are for {{ topics | listed('topic') }}.{% endif %}"
    impact: "Requests queue on this broker: producers and followers wait longer."
    actions:
      - >
        {% if can_batch and producers %}Increase linger.ms (5 to 50) and batch.size and enable compression in producers of
        {{ producers | listed("app") }}.{% endif %}
      - >
        {% if can_batch and not producers %}Increase linger.ms (5 to 50) and batch.size and enable compression in producers
        of its busiest topics.{% endif %}
      - "{% if not can_batch %}Requests are large already: move partition leaders to brokers with free capacity.{% endif %}"
      - "{% if can_batch %}Reduce the partitions of topics with little traffic: fewer partitions fill larger batches.{% endif %}"
      - "If that is not enough, add {{ more_brokers | counted('broker') }} to the cluster."
    commands:
      - >
        kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --describe{% if topics %} --topic
        {{ topics[0].topic }}{% endif %}
  recurring_peak:
    status: ok
    message: >
      Produce request rate of broker {{ broker_id }} is {{ produce_requests_per_second }}, as expected for this hour
      (baseline {{ baseline_requests_per_second }}).
    details:
      - "It exceeded the capacity of {{ capacity_per_second }} in {{ busy_hours }} of the last 24."
  peer_down:
    status: ok
    message: >
      Produce request rate of broker {{ broker_id }} is {{ produce_requests_per_second }} because {{ down_brokers }} of
      {{ brokers | counted("broker") }} {{ down_brokers | plural("is", "are") }} down.
  short_peak:
    status: ok
    message: >
      Produce request rate of broker {{ broker_id }} is {{ produce_requests_per_second }} (capacity
      {{ capacity_per_second }}), for less than {{ hours }} so far.
  below_capacity:
    status: ok
    message: >
      Broker {{ broker_id }} is busy, but its produce request rate of {{ produce_requests_per_second }} is below capacity
      ({{ capacity_per_second }}).
  not_saturated:
    status: ok
    message: >
      CPU and request handlers of broker {{ broker_id }} are not saturated (produce request rate
      {{ produce_requests_per_second }}).
  short_history:
    status: unknown
    message: >
      Not evaluated: broker {{ broker_id }} has no baseline for this hour, only {{ known_hours }} of the last 4 weeks are
      known.
  not_reported:
    status: unknown
    message: "Not evaluated: broker {{ broker_id }} did not report its produce requests, CPU, or request handlers in all of the last {{ hours }}."
  controller: {status: unknown, is_not_applicable: true, message: "Not applicable: {{ broker_id }} is a controller and holds no logs."}
  no_response: {status: unknown, message: "Not evaluated: broker {{ broker_id }} did not respond over JMX."}
caused_by:
  cpu_slows_broker: [high]
open_after_hours: 1
clear_after_hours: 2
description: |
  The broker gets more produce requests than its capacity, and its vCPUs are busy for cpu_ratio or its request handlers
  idle for less than handlers_idle_ratio, for `hours` in a row. The capacity (the knee of the latency curve) is learned from 14 days: the lowest rate
  (at least least_knee) from which on knee_share of the hours, and at least knee_hours, had a 99th percentile of produce
  latency above slow_ratio times its median. Without such a rate it is produce_per_second. The detector does not fire if
  the rate exceeds the capacity for at most peak_hours per day and this hour of the day or week is regularly as busy
  (peak_ratio), nor if the rate were below capacity with the brokers that are down back in service.
runbook: |
  ## Meaning
  The broker receives more produce requests than it can handle, and its CPU or request handlers are saturated.
  ## Impact
  Requests wait in the queue. Producers, consumers, and followers of this broker see higher latency.
  ## Diagnosis
  1. Check bytes per request: small requests come from producers without linger.ms, or with many partitions each.
  2. Check the listed producers and topics. A batch that waits for 0 ms has no linger.ms.
  3. Compare with other brokers: is the load of one broker too high, or that of all?
  ## Mitigation
  1. Increase linger.ms and batch.size of the producers, and enable compression.
  2. Move partition leaders to brokers with free capacity.
  3. Add a broker.
limitations: |
  Producers are known only where the JVMs of their applications are collected, with what they send to the whole cluster;
  otherwise only topics are known. Requests per topic count one for each partition of a request. Requests of consumers
  and followers use the same handlers and are not counted here. For a broker that always ran above its capacity, none can
  be learned.
*/
with broker as materialized (
  select
    *,
    cpu_ratio >= :cpu_ratio or request_handler_idle_min_ratio < :handlers_idle_ratio as is_strained
  from metrics.broker_hourly
  where hour = :hour
),

-- Only the history of saturated brokers is read.
past as materialized (
  select
    p.cluster,
    p.endpoint,
    p.hour,
    p.produce_requests_per_second as requests,
    p.produce_p99_ms,
    p.cpu_ratio >= :cpu_ratio or p.request_handler_idle_min_ratio < :handlers_idle_ratio as is_strained
  from broker as b
  inner join metrics.broker_hourly as p using (cluster, endpoint)
  where b.is_strained is not false
  and p.hour between :hour - interval '28 days' and :hour
),

recent as materialized (
  select *
  from past
  where hour between :hour - interval '14 days' and :hour - interval '1 hour'
),

latency as materialized (
  select
    cluster,
    endpoint,
    percentile_cont(0.5) within group (order by produce_p99_ms) as median_ms,
    percentile_cont(0.5) within group (order by requests) filter (
      where date_bin('1 day', hour, :hour) = hour
    ) as daily_requests
  from recent
  group by cluster, endpoint
  having count(produce_p99_ms) >= :least_history
),

above as (
  select
    p.cluster,
    p.endpoint,
    p.requests,
    count(*) over as_many as hours,
    count(*) filter (where p.produce_p99_ms > :slow_ratio * l.median_ms) over as_many as slow_hours
  from recent as p
  inner join latency as l using (cluster, endpoint)
  where p.requests > 0
  window as_many as (partition by p.cluster, p.endpoint order by p.requests desc)
),

learned as materialized (
  select
    cluster,
    endpoint,
    greatest(min(requests), :least_knee) as knee
  from above
  where hours >= :knee_hours and slow_hours >= :knee_share * hours
  group by cluster, endpoint
),

counted as materialized (
  select
    p.cluster,
    p.endpoint,
    coalesce(l.knee, :produce_per_second) as knee,
    l.knee is not null as is_learned,
    count(*) filter (where p.hour > :hour - interval '24 hours' and high.is_high) as busy_hours,
    count(*) filter (
      where p.hour > :hour - make_interval(hours => cast(:hours as integer)) and high.is_high
    ) >= :hours as has_lasted,
    count(*) filter (
      where p.hour > :hour - make_interval(hours => cast(:hours as integer)) and high.is_high is not false
    ) >= :hours as may_have_lasted,
    array_agg(p.hour) as hours,
    array_agg(p.requests) as requests
  from past as p
  left join learned as l using (cluster, endpoint)
  cross join lateral (
    select p.requests >= coalesce(l.knee, :produce_per_second) and p.is_strained as is_high
  ) as high
  group by p.cluster, p.endpoint, l.knee
),

listed as (
  select
    cluster,
    count(*) filter (where not is_listed and replicas > 0) as down_brokers
  from inventory.broker_hourly
  where hour = :hour
  group by cluster
),

cluster as (
  select
    cluster,
    count(*) as brokers,
    count(*) filter (where samples is null) as unresponsive_brokers,
    sum(produce_requests_per_second) as requests
  from broker
  where active_controllers is null or partitions is not null
  group by cluster
),

evaluated as (
  select
    b.*,
    n.knee,
    n.is_learned,
    n.busy_hours,
    n.has_lasted,
    n.may_have_lasted,
    u.known_hours,
    u.median is not null as has_baseline,
    greatest(case when u.kind = 'hour_of_week' then u.median end, a.daily_requests) as baseline_requests,
    c.brokers,
    coalesce(l.down_brokers, c.unresponsive_brokers) as down_brokers,
    c.requests as cluster_requests
  from broker as b
  left join counted as n using (cluster, endpoint)
  left join latency as a using (cluster, endpoint)
  left join cluster as c using (cluster)
  left join listed as l using (cluster)
  left join lateral public.topic_baseline(b.hour, n.hours, n.requests, cast(:least_history as integer)) as u
    on n.hours is not null
),

verdict as (
  select
    *,
    case
      when samples is null then 'no_response'
      when active_controllers is not null and partitions is null then 'controller'
      when produce_requests_per_second is null then 'not_reported'
      when not is_strained then 'not_saturated'
      when produce_requests_per_second < knee then 'below_capacity'
      when is_strained is null then 'not_reported'
      when not may_have_lasted then 'short_peak'
      when not has_lasted then 'not_reported'
      when produce_requests_per_second * (brokers - down_brokers) < knee * brokers then 'peer_down'
      when busy_hours > :peak_hours then 'high'
      when not has_baseline then 'short_history'
      when produce_requests_per_second <= :peak_ratio * baseline_requests then 'recurring_peak'
      else 'high'
    end as reason
  from evaluated
),

topic as (
  select
    t.cluster,
    t.endpoint,
    jsonb_agg(
      jsonb_build_object(
        'topic', t.topic, 'writes', t.produce_requests, 'write_bytes', t.bytes_in / nullif(t.produce_requests, 0)
      ) order by t.place
    ) as topics
  from (
    select
      s.*,
      row_number() over (
        partition by s.cluster, s.endpoint order by s.produce_requests desc, s.topic asc
      ) as place
    from verdict as v
    inner join metrics.broker_topic_sample as s using (hour, cluster, endpoint)
    where v.reason = 'high' and s.produce_requests > 0
  ) as t
  where t.place <= 3
  group by t.cluster, t.endpoint
)

select
  v.reason,
  v.cluster,
  coalesce(v.broker_id::text, v.endpoint) as broker_id,
  v.endpoint,
  v.instance_id,
  v.produce_requests_per_second,
  v.knee as capacity_per_second,
  v.is_learned,
  v.bytes_in_per_second / nullif(v.produce_requests_per_second, 0) as request_bytes,
  v.cpu_ratio as cpu_ratio_mean,
  v.request_handler_idle_min_ratio as handlers_idle_min_ratio,
  v.busy_hours,
  v.known_hours,
  v.baseline_requests as baseline_requests_per_second,
  v.produce_p99_ms,
  v.bytes_in_per_second / :batch_bytes as batched_requests_per_second,
  v.bytes_in_per_second < :batch_bytes * v.produce_requests_per_second as can_batch,
  v.brokers,
  v.down_brokers,
  greatest(ceil(v.cluster_requests / v.knee) - v.brokers, 1)::integer as more_brokers,
  t.topics,
  case when v.reason = 'high' then public.small_batch_producers(:hour, v.cluster, :batch_bytes) end as producers
from verdict as v
left join topic as t using (cluster, endpoint)

/*
title: Broker gets more produce requests than it can handle
resource_kind: broker
owner_role: platform
maturity: stable
reads: [metrics.broker_hourly, metrics.broker_topic_sample, metrics.client_hourly, inventory.broker_hourly]
params:
  produce_per_second: {default: 4000, unit: 1/s, why: "above it latencies rose on eight virtual CPUs; where 14 days show a knee, that one counts"}
  least_knee: {default: 1000, unit: 1/s, why: "two virtual CPUs bear as many: what is slow with fewer is so for another reason"}
  slow_ratio: {default: 2, unit: ratio, why: "producers that wait twice as long notice: from there on the knee is found"}
  knee_hours: {default: 6, unit: h, why: "fewer slow hours are an incident"}
  knee_share: {default: 0.8, unit: ratio, why: "of the hours with as many requests were slow: then it is the requests"}
  cpu_ratio: {default: 0.8, unit: ratio, why: "of all processors, as the mean of an hour: its minutes are at the limit"}
  handlers_idle_ratio: {default: 0.3, unit: ratio, why: "Kafka's own advice: below this requests begin to wait"}
  hours: {default: 2, unit: h, why: "in a row: a batch or a restart is over by then"}
  peak_hours: {default: 8, unit: h, why: "a day: a nightly batch lasts no longer; what does is the broker's load"}
  peak_ratio: {default: 1.25, unit: ratio, why: "a peak that grew by more isn't the one that has always been"}
  least_history: {default: 168, unit: h, why: "a week has every hour that is busy by habit"}
  batch_bytes: {default: 16384, unit: bytes, why: "batch.size of producers, by default"}
key_metrics: [produce_requests_per_second, knee_per_second, request_bytes, processors_busy_ratio, handlers_idle_min_ratio]
verdicts:
  high:
    status: firing
    severity: warning
    message: "Produce requests of {{ request_bytes }} come at {{ produce_requests_per_second }}; {% if is_learnt %}from {{ knee_per_second }} on its producers have waited longer{% else %}a broker bears {{ knee_per_second }}{% endif %}. {% if processors_busy_ratio %}Its processors are busy for {{ processors_busy_ratio }}. {% endif %}{% if handlers_idle_min_ratio %}Its request handlers are idle for {{ handlers_idle_min_ratio }} of their time. {% endif %}So it was in {{ busy_hours }} of the last 24."
    actions:
      - "{% if can_batch %}Let producers{% if producers %} in {{ producers | map(attribute='app') | join(', ') }}{% elif topics %} of {{ topics | map(attribute='topic') | join(', ') }}{% endif %} send larger batches (linger.ms 5 to 50, batch.size, compression.type){% if producers %}; {{ producers[0].app }} sends {{ producers[0].batch_bytes }} after {{ producers[0].queue_ms }}, with {{ producers[0].requests_per_second }}{% endif %}. In batches of {{ batch_bytes }} the same bytes are {{ batched_requests_per_second }}. A topic with fewer partitions makes fuller ones.{% else %}Its requests are large already: take leaders from it, if others have room.{% endif %} Else the cluster needs {{ more_brokers | counted('broker') }} more."
    commands: ["kafka-topics.sh --bootstrap-server {{ bootstrap_servers }} --describe{% if topics %} --topic {{ topics[0].topic }}{% endif %}"]
  habit: {status: ok, message: "Produce requests come at {{ produce_requests_per_second }}, {{ usual_requests_per_second }} is usual at this hour, and in {{ busy_hours }} of the last 24 only it got more than it bears."}
  peer_down: {status: ok, message: "Produce requests come at {{ produce_requests_per_second }} while {{ down_brokers }} of {{ brokers }} brokers {{ 'is' if down_brokers == 1 else 'are' }} down, whose share it takes."}
  new: {status: ok, message: "Produce requests come at {{ produce_requests_per_second }}, more than the {{ knee_per_second }} that it bears, but not for {{ hours }} yet."}
  few: {status: ok, message: "It is busy, but not with its produce requests: they come at {{ produce_requests_per_second }}, and it bears {{ knee_per_second }}."}
  at_ease: {status: ok, message: "It handles produce requests at {{ produce_requests_per_second }} with ease."}
  short_history: {status: unknown, message: "Produce requests come at {{ produce_requests_per_second }}; of only {{ known_hours }} known nobody can say whether they always do at this hour."}
  untold: {status: unknown, message: "The broker did not tell its produce requests, or how busy it is."}
  controller: {status: unknown, is_not_applicable: true, message: "It is a controller and holds no logs."}
  silent: {status: unknown, message: "The broker did not answer over JMX."}
caused_by:
  cpu_slows_broker: [high]
open_after_hours: 1
clear_after_hours: 2
description: |
  As many produce requests as the broker doesn't bear, and its processors busy for cpu_ratio or its request handlers idle for less
  than handlers_idle_ratio, for hours in a row. What it bears is learnt from 14 days: the least rate from which on
  knee_share of the hours, at least knee_hours of them, had a 99th percentile of produce requests beyond slow_ratio times
  its median; least_knee at least. Where no such rate is to be seen it is produce_per_second. No alarm where it is so for
  no more than peak_hours of a day and this hour of the day or of the week has always been like it (peak_ratio), nor where
  it would get fewer if the brokers that are down took their share.
runbook: |
  1. Bytes per request: small requests are producers without linger.ms, or with many partitions each.
  2. Which producers and topics: they are listed with what they send at once; a batch that waits for 0 ms has no linger.ms.
  3. Enough room elsewhere? Move leaders. Else a broker more.
limitations: |
  Producers are known only where their applications' JVMs are read, and by what they send to the whole cluster; else topics
  are. A write is a request's part for one partition. Requests of
  consumers and followers burden the handlers as well and aren't counted here. The knee of a broker that has always been
  beyond it isn't seen.
*/
with broker as materialized (
  select
    *,
    cpu_ratio >= :cpu_ratio or request_handler_idle_min_ratio < :handlers_idle_ratio as is_strained
  from metrics.broker_hourly
  where hour = :hour
),

-- What was, of those only that aren't at ease.
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

lately as materialized (
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
  from lately
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
  from lately as p
  inner join latency as l using (cluster, endpoint)
  where p.requests > 0
  window as_many as (partition by p.cluster, p.endpoint order by p.requests desc)
),

learnt as materialized (
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
    l.knee is not null as is_learnt,
    count(*) filter (where p.hour > :hour - interval '24 hours' and high.is_high) as busy_hours,
    count(*) filter (
      where p.hour > :hour - make_interval(hours => cast(:hours as integer)) and high.is_high
    ) >= :hours as has_lasted,
    array_agg(p.hour) as hours,
    array_agg(p.requests) as requests
  from past as p
  left join learnt as l using (cluster, endpoint)
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
    count(*) filter (where samples is null) as silent_brokers,
    sum(produce_requests_per_second) as requests
  from broker
  where active_controllers is null or partitions is not null
  group by cluster
),

judged as (
  select
    b.*,
    n.knee,
    n.is_learnt,
    n.busy_hours,
    n.has_lasted,
    u.known_hours,
    u.median is not null as knows_usual,
    greatest(case when u.kind = 'hour_of_week' then u.median end, a.daily_requests) as usual_requests,
    c.brokers,
    coalesce(l.down_brokers, c.silent_brokers) as down_brokers,
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
      when samples is null then 'silent'
      when active_controllers is not null and partitions is null then 'controller'
      when produce_requests_per_second is null then 'untold'
      when not is_strained then 'at_ease'
      when produce_requests_per_second < knee then 'few'
      when is_strained is null then 'untold'
      when not has_lasted then 'new'
      when produce_requests_per_second * (brokers - down_brokers) < knee * brokers then 'peer_down'
      when busy_hours > :peak_hours then 'high'
      when not knows_usual then 'short_history'
      when produce_requests_per_second <= :peak_ratio * usual_requests then 'habit'
      else 'high'
    end as reason
  from judged
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
),

-- Applications by the requests that full batches would spare.
producer as (
  select
    cluster,
    jsonb_agg(
      jsonb_build_object(
        'app', app,
        'batch_bytes', batch_bytes,
        'queue_ms', queue_ms,
        'requests_per_second', requests_per_second,
        'compression_ratio', compression_ratio
      ) order by place
    ) as producers
  from (
    select
      c.cluster,
      c.app,
      sum(c.batch_mean_bytes * c.requests) / sum(c.requests) as batch_bytes,
      sum(c.queue_mean_ms * c.requests) / sum(c.requests) as queue_ms,
      sum(c.requests / c.covered_seconds) as requests_per_second,
      sum(c.compression_ratio * c.requests) / sum(c.requests) as compression_ratio,
      row_number() over (
        partition by c.cluster
        order by sum(c.requests / c.covered_seconds * (:batch_bytes - c.batch_mean_bytes)) desc, c.app asc
      ) as place
    from metrics.client_hourly as c
    where c.hour = :hour and c.kind = 'producer'
    and c.batch_mean_bytes < :batch_bytes and c.requests > 0
    and c.cluster in (select v.cluster from verdict as v where v.reason = 'high')
    group by c.cluster, c.app
  ) as one
  where place <= 3
  group by cluster
)

select
  v.reason,
  v.cluster,
  coalesce(v.broker_id::text, v.endpoint) as broker_id,
  v.endpoint,
  v.instance_id,
  v.produce_requests_per_second,
  v.knee as knee_per_second,
  v.is_learnt,
  v.bytes_in_per_second / nullif(v.produce_requests_per_second, 0) as request_bytes,
  v.cpu_ratio as processors_busy_ratio,
  v.request_handler_idle_min_ratio as handlers_idle_min_ratio,
  v.busy_hours,
  v.known_hours,
  v.usual_requests as usual_requests_per_second,
  v.produce_p99_ms,
  v.bytes_in_per_second / :batch_bytes as batched_requests_per_second,
  v.bytes_in_per_second < :batch_bytes * v.produce_requests_per_second as can_batch,
  v.brokers,
  v.down_brokers,
  greatest(ceil(v.cluster_requests / v.knee) - v.brokers, 1)::integer as more_brokers,
  t.topics,
  case when v.reason = 'high' then p.producers end as producers
from verdict as v
left join topic as t using (cluster, endpoint)
left join producer as p using (cluster)

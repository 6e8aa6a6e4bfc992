/*
title: Application needs more memory than there is
resource_kind: application
owner_role: platform
maturity: stable
reads:
  - metrics.jvm_app_hourly
  - metrics.state_store_memory_hourly
  - inventory.instance_hourly
  - metrics.instance_hourly
  - metrics.node_hourly
  - inventory.topic_hourly
params:
  heavy_percent: {default: 85, unit: "%", why: "above it the page cache is gone and the kernel kills; 70 % is healthy"}
  split_ratio: {default: 2, unit: ratio, why: "a heap twice as large as what is live in it starves RocksDB"}
  heap_headroom_ratio: {default: 1.5, unit: ratio, why: "heap to set, over what is live after a collection"}
  heap_floor_bytes: {default: 268435456, unit: bytes, why: "no advice below 256 MiB of heap"}
  heap_step_bytes: {default: 67108864, unit: bytes, why: "heaps are advised in steps of 64 MiB, so that advice stands still"}
  live_days: {default: 7, unit: days, why: "what is live in a heap follows the day and the week; most of that time counts"}
  failure_percent: {default: 92, unit: "%", why: "when a machine dies the others take its stores; the kernel needs the rest, and the page cache through which they are restored"}
  measured_days: {default: 2, unit: days, why: "caches fill within hours; two days show whether stores still grow, and what of their bounds they use"}
  still_ratio: {default: 1.05, unit: ratio, why: "of the later half of that time to the earlier; write buffers come and go by as much"}
  data_days: {default: 7, unit: days, why: "stores grow by the week's rhythm"}
  paced_days: {default: 1, unit: days, why: "of less the slope is the hour's of the day, not growth"}
  ahead_days: {default: 14, unit: days, why: "what fills a cache later than in two weeks will be told when it is nearer"}
  unpacked_ratio: {default: 1, unit: ratio, why: "of blocks in a cache to their files: Kafka Streams packs none, unless a config setter has them packed"}
  pressure_percent: {default: 85, unit: "%", why: "of the heap, after a collection: the next ones free too little"}
  gc_percent: {default: 10, unit: "%", why: "of the hour in pauses of the collector: work stands still for so long"}
key_metrics: [may_grow_to_bytes, memory_bytes, heap_max_bytes, heap_live_bytes, off_heap_bytes]
verdicts:
  badly_split:
    status: firing
    severity: critical
    message: "{{ 'It' if processes == 1 else process }} may grow to {{ may_grow_to_bytes }}{% if neighbours_bytes %}, other JVMs there to {{ neighbours_bytes }}{% endif %}: {{ filled_percent }} of {{ memory_bytes }}. Of its {{ heap_max_bytes }} of heap only {{ heap_live_bytes }} are live; RocksDB takes {{ off_heap_bytes }}, the rest {{ rest_bytes }}.{% if hit > 1 %} {{ hit }} of its {{ processes }} processes have too little.{% endif %}"
    actions:
      - &make_room "
        {% if memory_needed_bytes <= memory_bytes %}Set the heap to {{ heap_to_set_bytes }}: then all has room.
        {% elif off_heap_room_bytes >= 128 * 1024 * 1024 %}{% if heap_to_set_bytes < heap_max_bytes %}Set the heap to {{ heap_to_set_bytes }}, and give{% else %}Give{% endif %}
        all stores one block cache of {{ off_heap_room_bytes }}, with a write buffer manager of half of it charged to it (RocksDBConfigSetter); or give it {{ memory_needed_bytes }} of memory.
        {% elif off_heap_bytes %}Give it {{ memory_needed_bytes }} of memory, or spread its partitions over more instances: a heap of {{ heap_to_set_bytes }} leaves too little for RocksDB.
        {% else %}Give it {{ memory_needed_bytes }} of memory: a heap of {{ heap_to_set_bytes }} doesn't fit.{% endif %}
        {% if heap_to_set_bytes < heap_max_bytes and heap_live_known_hours < 24 %}What is live in the heap is known of only {{ heap_live_known_hours }}: confirm after a day.{% endif %}"
    commands: &smaller_heap ["{% if heap_to_set_bytes < heap_max_bytes %}-Xmx{{ (heap_to_set_bytes.value / 1048576) | int }}m{% endif %}"]
  outgrows:
    status: firing
    severity: critical
    message: "{{ 'It' if processes == 1 else process }} may grow to {{ may_grow_to_bytes }}{% if neighbours_bytes %}, other JVMs there to {{ neighbours_bytes }}{% endif %}: {{ filled_percent }} of {{ memory_bytes }}. The heap takes {{ heap_max_bytes }}, {% if off_heap_bytes != 0 %}RocksDB {{ off_heap_bytes }}, {% endif %}the rest {{ rest_bytes }}.{% if hit > 1 %} {{ hit }} of its {{ processes }} processes have too little.{% endif %}"
    actions:
      - *make_room
    commands: *smaller_heap
  will_outgrow:
    status: firing
    severity: warning
    message: "{{ 'It' if processes == 1 else process }} may grow to {{ may_grow_to_bytes }}{% if neighbours_bytes %}, other JVMs there to {{ neighbours_bytes }}{% endif %}, {{ filled_percent }} of {{ memory_bytes }}, once all RocksDB stores take what they are configured for and have data for: its own {{ off_heap_bytes }}{% if off_heap_measured_bytes %}, of which they hold {{ off_heap_measured_bytes }} today{% endif %}{% if fills_at %}. At the pace of the last day it is too much by {{ fills_at }}{% endif %}.{% if hit > 1 %} {{ hit }} of its {{ processes }} processes have too little.{% endif %}"
    actions:
      - *make_room
    commands: *smaller_heap
  system_full:
    status: firing
    severity: critical
    message: "{{ system_memory_used_percent }} of {{ 'its machine' if processes == 1 else process }}'s memory is in use{% if may_grow_to_bytes %}; the process may grow to {{ may_grow_to_bytes }} of {{ memory_bytes }}{% endif %}."
    actions:
      - "
        {% if stores_unseen %}JMX shows none of the memory of its {% if unseen_stores %}{{ unseen_stores }} {% endif %}state stores: look there first. Give all stores one block cache with a write buffer manager charged to it (RocksDBConfigSetter), and record RocksDB's metrics (Kafka Streams 2.7 or later).
        {% elif machine_taken_bytes and machine_taken_bytes >= machine_used_bytes %}That is no more than the JVMs there are given, {{ machine_taken_bytes }}: give them less, or a larger machine.
        {% else %}See who takes it{% if machine_taken_bytes %}: the JVMs that are known there explain at most {{ machine_taken_bytes }} of {{ machine_used_bytes }}{% endif %}. If the rest is this process's, it leaks memory that JMX doesn't show: restart it for now, and bound malloc's arenas (MALLOC_ARENA_MAX=2) before looking for JNI.{% endif %}"
    commands: ["{% if instance_id %}aws ssm start-session --target {{ instance_id }}{% endif %}", "ps aux --sort=-rss | head -n 15"]
  outgrows_after_failure:
    status: firing
    severity: warning
    message: "{{ 'It' if processes == 1 else process }} fits now, but when a machine of the {{ instances }} instances of {{ application_id }} dies it may grow to {{ after_failure_bytes }} of {{ limit_bytes }}{% if machine_after_failure_bytes > after_failure_bytes %}, and all JVMs of its machine to {{ machine_after_failure_bytes }} of {{ host_memory_bytes }}{% endif %}."
    actions:
      - "{% if instances_needed %}Run {{ instances_needed }} instances instead of {{ instances }}, each on a machine of its own; or give{% else %}Give{% endif %} all stores one block cache with a write buffer manager charged to it (RocksDBConfigSetter), which doesn't grow with more of them{% if not instances_needed %}; or take larger machines{% endif %}."
    commands: ["kafka-consumer-groups.sh --bootstrap-server {{ bootstrap_servers }} --describe --group {{ application_id }} --members"]
  heap_full:
    status: firing
    severity: warning
    message: "{{ 'Its heap' if processes == 1 else 'The heap of ' ~ process }} is full: a collection leaves {{ heap_after_gc_percent }} of {{ heap_max_bytes }} in use."
    actions:
      - &larger_heap "See what holds the heap.{% if heap_wanted_bytes > heap_max_bytes %} If it has to, it needs {{ heap_wanted_bytes }}, {% if heap_wanted_bytes <= heap_room_bytes %}for which there is room.{% else %}which doesn't fit with what else is there.{% endif %}{% endif %}"
    commands: &see_the_heap
      - "{% if jmx_port %}jcmd $(lsof -t -i tcp:{{ jmx_port }} -s tcp:listen) GC.class_histogram | head -n 40{% endif %}"
      - "{% if heap_max_bytes < heap_wanted_bytes <= heap_room_bytes %}-Xmx{{ (heap_wanted_bytes.value / 1048576) | int }}m{% endif %}"
  collecting:
    status: firing
    severity: warning
    message: "{{ 'Its work' if processes == 1 else 'The work of ' ~ process }} stood still for {{ paused_percent }} of the hour: the garbage collector paused it for {{ gc_seconds }}."
    actions:
      - *larger_heap
    commands: *see_the_heap
  fits: {status: ok, message: "{% if processes == 1 %}It fits: it{% else %}All {{ processes }} processes fit: the fullest{% endif %} may grow to {{ may_grow_to_bytes }}{% if neighbours_bytes %}, other JVMs there to {{ neighbours_bytes }}{% endif %}, {{ filled_percent }} of {{ memory_bytes }}. The heap takes {{ heap_max_bytes }}, {% if off_heap_bytes != 0 %}RocksDB {{ off_heap_bytes }}, {% endif %}the rest {{ rest_bytes }}."}
  silent: {status: unknown, message: "{{ 'It' if processes == 1 else process }} did not answer over JMX."}
  limit_unknown: {status: unknown, message: "The memory of its machine is not known."}
  stores_unseen: {status: unknown, message: "JMX shows none of the memory of its state stores, {% if unseen_stores %}some {{ unseen_stores }} in {{ process }}: by Kafka's defaults it may grow to {{ at_most_bytes }} of {{ limit_bytes }}{% else %}and how many there are is not known{% endif %}. Without them it takes {{ may_grow_to_bytes }}."}
  growth_unknown: {status: unknown, message: "Its heap limit or the memory of its RocksDB stores is not known."}
  rest_unknown: {status: unknown, message: "Its memory outside of heap and RocksDB is not known."}
  cache_unclear: {status: unknown, message: "It may grow to {{ may_grow_to_bytes }} or to {% if at_most_bytes %}{{ at_most_bytes }}{% else %}more{% endif %} of {{ limit_bytes }}: while its caches are so empty nobody can tell whether its stores share one."}
  failure_unknown: {status: unknown, message: "It fits now; how many stores its {{ instances }} instances have, and so what a failure moves, is not known of all of them."}
  heap_unknown: {status: unknown, message: "It fits; how full a collection leaves {{ 'its heap' if processes == 1 else 'the heap of ' ~ process }} of {{ heap_max_bytes }} is not known{% if heap_left_bytes %}: {{ heap_left_bytes }} at most{% endif %}."}
  neighbour_unknown: {status: unknown, message: "The memory of another JVM on its machine is not known."}
description: |
  What a process may grow to is its whole heap (-Xmx), metaspace, code, stacks and direct buffers as they are now, and
  RocksDB: for each store instance its write buffers and its block cache, a shared cache once, or what RocksDB reports
  where that is more already. Once a process has run for measured_days with no fewer stores, and RocksDB has grown no more
  (still_ratio), the most that it reported counts instead. A cache holds no more than its stores' files do, now and in
  ahead_days at the pace of the last data_days, and write buffers no more than twice what they were seen to hold in that
  time and what is written until then; where that isn't known, all of their capacity counts. All JVMs of a machine are
  added up, containers up to their limits; an application is as badly off as the worst of its processes.
  Critical: what it is given and what RocksDB holds is more than heavy_percent of the memory of the container or the
  machine; or the system itself has so much in use.

  Warning: it will be too much if RocksDB takes what it may. Or it fits now, but not after the worst single failure: more
  than failure_percent. Then a machine is gone, and the other processes of its
  applications have taken over its stores, evenly, none twice; write buffers and own caches come with them, a shared
  cache doesn't grow. Also a warning: a collection leaves more than pressure_percent of the heap in use, or pauses take
  more than gc_percent of the hour.

  Of a Streams application whose stores JMX doesn't show the changelogs' partitions tell how many there are: nothing is
  expected of them at least, and at most what Kafka's defaults give them. A missing figure is never healthy: it alarms where the known ones are too much already, it is fine where the most that
  it can be still fits, and else it isn't judged.
causes:
  memory_stops_threads: [badly_split, outgrows, system_full, heap_full, collecting]
open_after_hours: 1
clear_after_hours: 2
runbook: |
  1. Look at the split below: heap, off-heap (RocksDB), rest, and the other JVMs on the machine.
  2. Heap far above what is live after a collection: set -Xmx to the figure in the advice.
  3. RocksDB too large: give all stores one block cache and one write buffer manager (RocksDBConfigSetter) of the size in
     the advice; or spread the partitions over more instances; or take a larger type.
  4. Restart one process, wait until its stores are restored, then the next.
  5. Only a warning, that the death of one machine would be too much for the others: add an instance before one dies.
  6. Only a warning, that the heap is full or is collected all the time: see what holds it (jcmd <pid> GC.class_histogram)
     before raising -Xmx.
limitations: |
  Stores without a changelog aren't counted where JMX doesn't show them. What RocksDB holds in a quiet week says nothing of
  a busy one. Where a config setter has blocks packed, a cache holds more than its store's files: set unpacked_ratio.
  RocksDB's write buffers aren't in JMX: set rocksdb_write_buffer_bytes and rocksdb_write_buffers of the endpoint where
  the application sets them. Stacks count 1 MiB a thread. Off-heap memory that neither RocksDB nor direct buffers take
  (JNI, malloc's arenas) shows only in the system's memory, which needs the CloudWatch agent or node exporter. What is
  live in a heap whose old generation hasn't been collected is an upper bound. Processes that aren't configured aren't
  counted, and JVMs are known to share a machine only where instance_id is set. After a failure stores are taken to spread
  evenly. A small shared cache (tens of MiB) stays up to a seventh below its capacity for good: RocksDB cuts it into
  shards of half a MiB, in which the write buffers' entries of 256 KiB leave gaps.
*/
-- A process that has just started holds next to nothing: the most of the last days counts.
with live as materialized (
  select
    cluster,
    app,
    endpoint,
    -- One that is silent is what it was, or what others of its name are.
    coalesce(
      (array_agg(application_id order by hour desc) filter (where application_id is not null))[1],
      max(max(application_id)) over (partition by cluster, app),
      app
    ) as known_as,
    max(heap_used_after_gc_bytes) as heap_live_bytes,
    count(heap_used_after_gc_bytes) as heap_live_known_hours
  from metrics.jvm_app_hourly
  where hour > :hour - make_interval(days => :live_days) and hour <= :hour
  group by cluster, app, endpoint
),

-- By how much RocksDB's highest figure rose from half a day to the next, since the process has run.
pace as materialized (
  select
    a.cluster,
    a.endpoint,
    (
      max(b.rocksdb_measured_bytes)
      - max(b.rocksdb_measured_bytes) filter (where b.hour <= a.hour - interval '12 hours')
    ) / 12 as bytes_per_hour
  from metrics.jvm_app_hourly as a
  inner join metrics.jvm_app_hourly as b
    on
      a.cluster = b.cluster and a.endpoint = b.endpoint and a.process_started_at = b.process_started_at
      and b.hour > :hour - interval '24 hours' and b.hour <= :hour
  where a.hour = :hour
  group by a.cluster, a.endpoint
),

process as (
  select
    *,
    total_bytes + growth_bytes as after_failure_bytes,
    machine_total_bytes + machine_growth_bytes as machine_after_failure_bytes,
    greatest(100 * total_bytes / limit_bytes, 100 * machine_total_bytes / host_memory_bytes) as filled_percent,
    greatest(100 * most_bytes / limit_bytes, 100 * machine_most_bytes / host_memory_bytes) as most_percent,
    -- The one of the two that it fills more.
    case
      when machine_total_bytes / host_memory_bytes > total_bytes / limit_bytes then host_memory_bytes
      else limit_bytes
    end as memory_bytes,
    greatest(
      :heap_floor_bytes,
      ceil(:heap_headroom_ratio * coalesce(heap_live_bytes, heap_max_bytes) / :heap_step_bytes) * :heap_step_bytes
    ) as heap_wanted_bytes,
    greatest(100 * taken_bytes / limit_bytes, 100 * machine_taken_bytes / host_memory_bytes) as taken_percent,
    100 * heap_survived_bytes / heap_max_bytes as heap_after_gc_percent,
    coalesce(heap_used_after_gc_bytes, heap_used_bytes) as heap_left_bytes,
    -- Of a whole hour: in the first minutes of a process there is nothing but warming up.
    100 * gc_seconds / greatest(covered_seconds, 3600) as paused_percent
  from (select * from metrics.jvm_app_hourly where hour = :hour) as a
  inner join metrics.process_memory(
    :hour, :measured_days, :still_ratio, :data_days, :paced_days, :ahead_days, :unpacked_ratio
  ) using (cluster, endpoint)
  left join metrics.growth_on_failure(
    :hour, :measured_days, :still_ratio, :data_days, :paced_days, :ahead_days, :unpacked_ratio
  ) using (cluster, endpoint)
  left join live using (cluster, app, endpoint)
  left join pace using (cluster, endpoint)
),

judged as (
  select
    *,
    total_bytes is not null and filled_percent > :heavy_percent as may_outgrow,
    taken_bytes is not null and taken_percent > :heavy_percent as outgrows,
    greatest(100 * after_failure_bytes / limit_bytes, 100 * machine_after_failure_bytes / host_memory_bytes)
    > :failure_percent as outgrows_after_failure,
    most_percent <= :heavy_percent and most_bytes is not null and (instance_id is null or machine_most_bytes is not null)
      as is_sure_to_fit,
    least(heap_max_bytes, heap_wanted_bytes) as heap_to_set_bytes,
    -- Of a container's own limit the others on the machine take nothing.
    case when memory_bytes = host_memory_bytes then neighbours_bytes else 0 end as beside_bytes,
    -- How many of them it can hold after a failure.
    floor((limit_bytes * :failure_percent / 100 - total_bytes) / nullif(bytes_per_store, 0) + coalesce(store_instances, 0))
      as stores_that_fit
  from process
),

told as (
  select
    *,
    case
      when samples is null then 'silent'
      when outgrows and heap_max_bytes >= :split_ratio * heap_live_bytes and off_heap_bytes > 0 then 'badly_split'
      when outgrows then 'outgrows'
      when system_memory_used_percent > :heavy_percent then 'system_full'
      when may_outgrow then 'will_outgrow'
      when outgrows_after_failure then 'outgrows_after_failure'
      when heap_after_gc_percent > :pressure_percent then 'heap_full'
      when paused_percent > :gc_percent then 'collecting'
      when is_sure_to_fit and is_unknown then 'failure_unknown'
      -- Of what its collections left only the most that it may be is known, or nothing.
      when is_sure_to_fit and heap_survived_bytes is null and (100 * heap_left_bytes / heap_max_bytes <= :pressure_percent) is not true
        then 'heap_unknown'
      when is_sure_to_fit then 'fits'
      when limit_bytes is null then 'limit_unknown'
      when heap_max_bytes is not null and coalesce(unseen_stores > 0, true) then 'stores_unseen'
      when heap_max_bytes is null or off_heap_bytes is null then 'growth_unknown'
      when non_heap_used_bytes is null then 'rest_unknown'
      when most_bytes is null or 100 * most_bytes / limit_bytes > :heavy_percent then 'cache_unclear'
      else 'neighbour_unknown'
    end as reason,
    -- Beyond some months nobody plans with it.
    case when hours_left between 0 and 24 * 90
      then :hour + interval '1 hour' * (1 + hours_left) end as fills_at
  from judged
  cross join lateral (
    select
      (
        memory_bytes * :heavy_percent / 100
        - case when memory_bytes = host_memory_bytes then machine_taken_bytes else taken_bytes end
      ) / nullif(greatest(bytes_per_hour, 0), 0) as hours_left
  ) as forecast
),

-- An application is as badly off as the worst of its processes: alarms, then what isn't known.
ranked as (
  select
    *,
    array_position(
      array[
        'badly_split', 'outgrows', 'system_full', 'will_outgrow', 'outgrows_after_failure', 'heap_full', 'collecting'
      ],
      reason
    ) as rank
  from told
),

verdict as (
  select
    *,
    count(*) over application as processes,
    count(rank) over application as hit,
    jsonb_agg(public.resource_key('process', cluster, endpoint)) filter (where rank is not null) over application as affected
  from ranked
  window application as (partition by cluster, known_as)
)

select distinct on (cluster, known_as)
  reason,
  cluster,
  known_as as application_id,
  affected,
  processes,
  hit,
  coalesce(instance_id, substring(endpoint from '://([^/]+)'), endpoint) as process,
  endpoint,
  app,
  instance_id,
  total_bytes as may_grow_to_bytes,
  most_bytes as at_most_bytes,
  memory_bytes,
  filled_percent,
  heap_max_bytes,
  heap_used_bytes,
  heap_used_after_gc_bytes,
  heap_left_bytes,
  heap_live_bytes,
  heap_live_known_hours,
  off_heap_bytes,
  rocksdb_measured_bytes as off_heap_measured_bytes,
  rocksdb_expected_bytes as off_heap_expected_bytes,
  rest_bytes,
  beside_bytes as neighbours_bytes,
  limit_bytes,
  taken_bytes,
  machine_taken_bytes,
  system_memory_used_percent * host_memory_bytes / 100 as machine_used_bytes,
  host_memory_bytes,
  fills_at,
  is_settled as stores_settled,
  unseen_stores,
  coalesce(unseen_stores > 0, true) as stores_unseen,
  system_memory_used_percent,
  after_failure_bytes,
  machine_after_failure_bytes,
  heap_after_gc_percent,
  gc_seconds,
  paused_percent,
  heap_to_set_bytes,
  heap_wanted_bytes,
  memory_bytes * :heavy_percent / 100 - beside_bytes - coalesce(off_heap_bytes, 0) - rest_bytes as heap_room_bytes,
  memory_bytes * :heavy_percent / 100 - beside_bytes - heap_to_set_bytes - rest_bytes as off_heap_room_bytes,
  (heap_to_set_bytes + coalesce(off_heap_bytes, 0) + rest_bytes + beside_bytes) * 100 / :heavy_percent
    as memory_needed_bytes,
  instances,
  case when outgrows_after_failure and stores_that_fit >= 1
    then greatest(ceil(stores / stores_that_fit) + 1, instances + 1) end as instances_needed,
  store_instances,
  rocksdb_shared_cache as shared_block_cache,
  substring(endpoint from ':([0-9]+)') as jmx_port
from verdict
order by cluster asc, known_as asc, rank asc nulls last, reason = 'fits' asc, filled_percent desc nulls last, endpoint asc

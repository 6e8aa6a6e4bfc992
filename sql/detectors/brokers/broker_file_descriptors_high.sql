/*
title: Broker is running out of file descriptors
resource_kind: broker
owner_role: platform
maturity: stable
reads: [metrics.broker_hourly, metrics.broker_topic_sample]
params:
  high_ratio: {default: 0.75, unit: ratio, why: "a broker that takes over the leaders of a failed peer opens many files at once"}
  critical_ratio:
    default: 0.9
    unit: ratio
    why: "without a free descriptor it accepts no connection and rolls no segment, and its log directory fails"
  max_maps:
    default: 65530
    unit: maps
    why: "default of vm.max_map_count on Linux; JMX does not expose it, so set the value of the brokers' hosts here"
  hours_ahead: {default: 24, unit: h, why: "one day to raise a limit before it is reached"}
  least_history: {default: 48, unit: h, why: "in fewer hours a single step resembles growth"}
  start_minutes: {default: 60, unit: min, why: "all clients reconnect at once, and log recovery opens files that it closes again"}
key_metrics: [open_file_descriptors, max_file_descriptors, hours_to_full, segments, largest_topics]
verdicts:
  nearly_exhausted:
    status: firing
    severity: critical
    message: &message "Broker {{ broker_id }} has {{ open_file_descriptors }} of {{ max_file_descriptors }} file descriptors open ({{ used_ratio }})."
    details: &details
      - "{% if largest_topics %}Topics with the most segments: {{ largest_topics | listed('topic', 3) }}.{% endif %}"
      - "{% if freed_segments %}Unused topics hold {{ freed_segments | counted('segment') }}.{% endif %}"
    impact: &impact "At the limit the broker accepts no connections, rolls no segments, and takes its log directory offline."
    actions: &actions
      - "Raise the limit of the running process to {{ advised_file_descriptors }} with prlimit."
      - "Set LimitNOFILE={{ advised_file_descriptors.value }} in the systemd unit for the next start."
      - "Increase segment.bytes or segment.ms of the topics with the most segments, and delete unused topics."
    commands: &commands
      - "{% if jmx_port %}lsof -n -p \"$(lsof -t -i tcp:{{ jmx_port }} -s tcp:listen)\" | awk '{print $5}' | sort | uniq -c | sort -rn{% endif %}"
      - "{% if jmx_port %}prlimit --pid \"$(lsof -t -i tcp:{{ jmx_port }} -s tcp:listen)\" --nofile={{ advised_file_descriptors }}:{{ advised_file_descriptors }}{% endif %}"
      - "{% if jmx_port %}ps -o unit= -p \"$(lsof -t -i tcp:{{ jmx_port }} -s tcp:listen)\"{% endif %}"
      - &largest "{% if is_segmented %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --entity-type topics --entity-name {{ largest_topics[0].topic }} --add-config segment.bytes=1073741824,segment.ms=604800000{% endif %}"
      - &second "{% for one in (largest_topics or [])[1:2] if is_segmented %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --entity-type topics --entity-name {{ one.topic }} --add-config segment.bytes=1073741824,segment.ms=604800000{% endfor %}"
      - &third "{% for one in (largest_topics or [])[2:3] if is_segmented %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --entity-type topics --entity-name {{ one.topic }} --add-config segment.bytes=1073741824,segment.ms=604800000{% endfor %}"
  growing:
    status: firing
    severity: critical
    message: "Broker {{ broker_id }} reaches its limit of {{ max_file_descriptors }} file descriptors in {{ hours_to_full }}."
    details:
      - "{{ open_file_descriptors }} are open, and {{ growth_per_hour }} are added each hour."
    impact: *impact
    actions:
      - "{% if used_ratio > 0.5 %}Raise the limit of the running process to {{ advised_file_descriptors }} with prlimit.{% endif %}"
      - "Find what grows: connections that are never closed, or log segments."
      - "Close leaked connections at their client, or increase segment.bytes of the largest topics."
    commands:
      - "{% if jmx_port %}lsof -n -p \"$(lsof -t -i tcp:{{ jmx_port }} -s tcp:listen)\" | awk '{print $5}' | sort | uniq -c | sort -rn{% endif %}"
      - "{% if jmx_port %}prlimit --pid \"$(lsof -t -i tcp:{{ jmx_port }} -s tcp:listen)\" --nofile={{ advised_file_descriptors }}:{{ advised_file_descriptors }}{% endif %}"
  high:
    status: firing
    severity: warning
    message: *message
    details: *details
    impact: *impact
    actions: *actions
    commands: *commands
  memory_maps_high:
    status: firing
    severity: warning
    message: "Broker {{ broker_id }} needs {{ maps }} memory maps for its segments, {{ maps_ratio }} of vm.max_map_count ({{ max_maps }})."
    details:
      - "The broker has {{ segments | counted('log segment') }}, and each takes two memory maps."
      - "{% if largest_topics %}Topic {{ largest_topics[0].topic }} has the most segments: {{ largest_topics[0].segments }}.{% endif %}"
      - "{% if freed_segments %}Unused topics hold {{ freed_segments | counted('segment') }}.{% endif %}"
    impact: "At the limit the broker terminates with OutOfMemoryError: Map failed."
    actions:
      - "Raise vm.max_map_count to {{ advised_maps }}, now and for the next boot."
      - "If the hosts already allow more, set the parameter max_maps to their value."
      - "Increase segment.bytes or segment.ms of the topics with the most segments, and delete unused topics."
    commands:
      - "cat /proc/sys/vm/max_map_count"
      - "sysctl -w vm.max_map_count={{ advised_maps.value }}"
      - "echo vm.max_map_count={{ advised_maps.value }} > /etc/sysctl.d/90-kafka.conf"
      - *largest
      - *second
      - *third
  within_limit:
    status: ok
    message: "Broker {{ broker_id }} has {{ open_file_descriptors }} of {{ max_file_descriptors }} file descriptors open ({{ used_ratio }})."
  starting:
    status: unknown
    message: "Not evaluated: broker {{ broker_id }} started at {{ process_started_at }}, and its open files have not settled."
  no_response: {status: unknown, message: "Not evaluated: broker {{ broker_id }} did not respond over JMX."}
  not_reported:
    status: unknown
    message: "Not evaluated: broker {{ broker_id }} did not report its open file descriptors, their limit, or its segments."
causes:
  limits_stop_broker: [nearly_exhausted, growing, high, memory_maps_high]
open_after_hours: 1
clear_after_hours: 2
description: |
  Open file descriptors as a share of the limit, the largest sample of the hour. Growth is the Theil–Sen slope of the last
  7 days and that of the last 24 hours since the broker's start. The smaller of the two must reach the limit within
  hours_ahead, so that neither a burst nor a step counts as growth. Memory maps: two for each log segment (offset index
  and time index) as a share of max_maps; critical from critical_ratio on, a warning from high_ratio on.
runbook: |
  ## Meaning
  The broker process approaches its limit of open files (LimitNOFILE) or of memory maps (vm.max_map_count).
  ## Impact
  Without a free descriptor the broker rejects connections and fails its log directory. Without a free map it terminates.
  ## Diagnosis
  1. Count the descriptors by type with lsof: sockets or log segments (three files each: log, index, time index).
  2. Thousands of sockets of one client, or sockets in CLOSE_WAIT, are a connection leak of that client.
  3. Compare `cat /proc/sys/vm/max_map_count` with `wc -l < /proc/PID/maps`, with the PID of this broker.
  ## Mitigation
  1. Raise the limit of the running process with prlimit, and LimitNOFILE of the unit for the next start.
  2. Raise vm.max_map_count to at least two maps for each segment.
  3. Increase segment.bytes or segment.ms of topics with many small segments, and delete unused topics.
limitations: |
  JMX does not expose vm.max_map_count, so max_maps is used instead. After a restart Kafka 2.3 and later maps the indexes
  of an old segment only when they are read, so the real number of maps may be lower. Threads and libraries of the JVM add
  some hundreds. A limit reported as unlimited is not evaluated. The limit of the whole host (fs.file-max) is not checked.
  Unused topics are those named by earlier findings of topic_abandoned and changelog_abandoned.
*/
with broker as (
  select
    b.*,
    open_file_descriptors / nullif(greatest(max_file_descriptors, 0), 0) as used_ratio,
    2 * segments as maps,
    2 * segments / :max_maps as maps_ratio
  from metrics.broker_hourly as b
  where b.hour = :hour
),

growth as (
  select
    b.cluster,
    b.endpoint,
    count(h.open_file_descriptors) as known_hours,
    count(h.segments) > 0 as has_segments,
    public.theil_sen(array_agg(h.hour), array_agg(h.open_file_descriptors)) as week_growth,
    public.theil_sen(array_agg(h.hour), array_agg(day.open_file_descriptors)) as day_growth
  from broker as b
  inner join metrics.broker_hourly as h
    on b.cluster = h.cluster and b.endpoint = h.endpoint
    and h.hour between b.hour - interval '7 days' and b.hour and h.hour >= coalesce(b.process_started_at, '-infinity')
  cross join lateral (
    select case when h.hour > b.hour - interval '24 hours' then h.open_file_descriptors end as open_file_descriptors
  ) as day
  group by b.cluster, b.endpoint, b.hour
),

evaluated as (
  select
    b.*,
    g.has_segments,
    s.growth_per_hour,
    case when g.known_hours >= :least_history and s.growth_per_hour > 0 and b.used_ratio is not null
      then greatest(b.max_file_descriptors - b.open_file_descriptors, 0) / s.growth_per_hour
    end as hours_to_full
  from broker as b
  left join growth as g on b.cluster = g.cluster and b.endpoint = g.endpoint
  -- least() ignores nulls: without this check it would take the one slope that is known.
  cross join lateral (
    select case when num_nulls(g.week_growth, g.day_growth) = 0 then least(g.week_growth, g.day_growth) end
      as growth_per_hour
  ) as s
),

unused as (
  select distinct jsonb_array_elements_text(affected) as key
  from detect.notified_before(array['topic_abandoned', 'changelog_abandoned'], :hour)
),

topics as (
  select
    cluster,
    endpoint,
    bool_or(segments is not null) as is_segmented,
    sum(segments) filter (where is_unused) as freed_segments,
    jsonb_agg(jsonb_build_object('topic', topic, 'segments', segments, 'log_bytes', log_bytes) order by place)
      filter (where place <= 5) as largest_topics
  from (
    select
      s.cluster,
      s.endpoint,
      s.topic,
      s.segments,
      s.log_bytes,
      u.key is not null as is_unused,
      row_number() over (
        partition by s.cluster, s.endpoint
        order by s.segments desc nulls last, s.log_bytes desc nulls last, s.topic asc
      ) as place
    from evaluated as j
    inner join metrics.broker_topic_sample as s on j.hour = s.hour and j.cluster = s.cluster and j.endpoint = s.endpoint
    left join unused as u on public.resource_key('topic', s.cluster, s.topic) = u.key
    where s.hour = :hour and coalesce(s.segments, s.log_bytes) is not null
    and (
      greatest(j.used_ratio, j.maps_ratio) >= least(:high_ratio, :critical_ratio) or j.hours_to_full <= :hours_ahead
    )
  ) as ranked
  group by cluster, endpoint
)

select
  case
    when j.samples is null then 'no_response'
    when j.process_started_at > j.hour + make_interval(mins => 60 - cast(:start_minutes as integer)) then 'starting'
    when j.used_ratio >= :critical_ratio then 'nearly_exhausted'
    when j.maps_ratio >= :critical_ratio then 'memory_maps_high'
    when j.hours_to_full <= :hours_ahead then 'growing'
    when j.maps_ratio >= :high_ratio then 'memory_maps_high'
    when j.used_ratio >= :high_ratio then 'high'
    when j.used_ratio is null or j.has_segments and j.segments is null then 'not_reported'
    else 'within_limit'
  end as reason,
  case when j.maps_ratio >= :critical_ratio then 'critical' end as severity,
  j.cluster,
  coalesce(j.broker_id::text, j.endpoint) as broker_id,
  j.endpoint,
  substring(j.endpoint from ':([0-9]+)') as jmx_port,
  j.instance_id,
  j.open_file_descriptors,
  j.max_file_descriptors,
  j.used_ratio,
  j.growth_per_hour,
  j.hours_to_full,
  j.segments,
  j.maps,
  j.maps_ratio,
  j.partitions,
  j.client_connections,
  t.largest_topics,
  t.is_segmented,
  t.freed_segments,
  j.process_started_at,
  greatest(100000, 2 * j.max_file_descriptors) as advised_file_descriptors,
  -- Twice the current need; 262,144 is a common setting for Kafka hosts.
  greatest(262144, 2 * j.maps) as advised_maps
from evaluated as j
left join topics as t on j.cluster = t.cluster and j.endpoint = t.endpoint

/*
title: Broker runs out of file descriptors, or of memory maps
resource_kind: broker
owner_role: platform
maturity: stable
reads: [metrics.broker_hourly, metrics.broker_topic_sample]
params:
  high_ratio: {default: 0.75, unit: ratio, why: "a broker that takes over a dead peer's leaders opens more at once"}
  critical_ratio: {default: 0.9, unit: ratio, why: "without a free one it accepts no connection and rolls no segment: it fails its log directory"}
  max_maps: {default: 65530, unit: maps, why: "vm.max_map_count as Linux has it by default; JMX doesn't tell it: set here what the brokers' machines have"}
  hours_ahead: {default: 24, unit: h, why: "a day to raise a limit before it is reached"}
  least_history: {default: 48, unit: h, why: "in fewer hours a single step looks like growth"}
  start_minutes: {default: 60, unit: min, why: "clients all come back at once, and log recovery opens what it closes again"}
key_metrics: [open_file_descriptors, max_file_descriptors, hours_to_full, segments, largest_topics]
verdicts:
  nearly_full:
    status: firing
    severity: critical
    message: "{{ open_file_descriptors }} of {{ max_file_descriptors }} files are open, {{ used_ratio }}."
    actions:
      - &cure "Raise the limit of open files to {{ advised_file_descriptors }}: with prlimit at once, in the unit of systemd for the next start. Segments are most of them: larger segment.bytes or segment.ms for the largest topics, fewer partitions."
    commands: &commands
      - &segments "{% if is_segmented %}{% for one in largest_topics[:3] %}kafka-configs.sh --bootstrap-server {{ bootstrap_servers }} --alter --entity-type topics --entity-name {{ one.topic }} --add-config segment.bytes=1073741824,segment.ms=604800000; {% endfor %}{% endif %}"
      - "prlimit --pid \"$(pgrep -f kafka.Kafka)\" --nofile={{ advised_file_descriptors }}:{{ advised_file_descriptors }}"
      - "systemctl edit kafka  # [Service] LimitNOFILE={{ advised_file_descriptors }}"
  filling:
    status: firing
    severity: critical
    message: "{{ open_file_descriptors }} of {{ max_file_descriptors }} files are open and {{ growth_per_hour }} more each hour: none is left in {{ hours_to_full }}."
    actions:
      - "Look at what grows: connections that nobody closes, or segments. {% if used_ratio > 0.5 %}Raise the limit of open files to {{ advised_file_descriptors }} meanwhile.{% endif %}"
    commands:
      - "lsof -n -p \"$(pgrep -f kafka.Kafka)\" | awk '{print $5}' | sort | uniq -c | sort -rn"
      - "prlimit --pid \"$(pgrep -f kafka.Kafka)\" --nofile={{ advised_file_descriptors }}:{{ advised_file_descriptors }}"
  high:
    status: firing
    severity: warning
    message: "{{ open_file_descriptors }} of {{ max_file_descriptors }} files are open, {{ used_ratio }}."
    actions:
      - *cure
    commands: *commands
  maps_high:
    status: firing
    severity: warning
    message: "Its {{ segments | counted('log segment') }} take {{ maps }} memory maps, {{ maps_ratio }} of the {{ max_maps }} that its kernel allows: the broker ends when it gets no more."
    actions:
      - "Allow {{ advised_maps }} maps, at once and for the next start of the machine (or set max_maps to what it allows already). {% if largest_topics %}{{ largest_topics[0].topic }} has most segments, {{ largest_topics[0].segments }}: larger segment.bytes or segment.ms roll fewer.{% endif %}{% if freed_segments %} {{ freed_segments }} of them are of topics that nobody uses.{% endif %}"
    commands:
      - "sysctl -w vm.max_map_count={{ advised_maps.value }}"
      - "echo vm.max_map_count={{ advised_maps.value }} > /etc/sysctl.d/90-kafka.conf"
      - *segments
  room: {status: ok, message: "{{ open_file_descriptors }} of {{ max_file_descriptors }} files are open, {{ used_ratio }}."}
  starting: {status: unknown, message: "It was started at {{ process_started_at }}: its open files have not settled."}
  silent: {status: unknown, message: "The broker did not answer over JMX."}
  untold: {status: unknown, message: "The broker did not tell its open files, or their limit."}
causes:
  limits_stop_broker: [nearly_full, filling, high, maps_high]
open_after_hours: 1
clear_after_hours: 2
description: |
  Open files as a share of the limit, the largest sample. Ahead: the slope (Theil and Sen) of the last 7 days and that of
  the last 24 hours, since the broker's start; the smaller of the two must fill the limit within hours_ahead, so that
  neither a burst nor a step counts as growth. Memory maps: two for each log segment, its offset and its time index, as a
  share of max_maps; critical from critical_ratio on, a warning from high_ratio on.
runbook: |
  1. Raise the limit of the running process with prlimit, and of the unit (LimitNOFILE) for the next start.
  2. What are they? Sockets in CLOSE_WAIT or thousands of connections of one client: that client. Else segments: three
     files each (log, index, time index), for as long as they are retained.
  3. Topics with many small segments: raise segment.bytes or segment.ms. Topics that nobody needs: remove them.
  4. vm.max_map_count must hold two maps for each segment: it ends a broker before the limit of files does
     (OutOfMemoryError: Map failed). What it has: cat /proc/sys/vm/max_map_count; wc -l < /proc/$(pgrep -f kafka.Kafka)/maps.
limitations: |
  The limit of maps isn't in JMX: max_maps stands for it. After a restart Kafka (2.3 and later) maps an old segment's
  indexes only when they are read: maps are then fewer than two each. Threads and libraries of the JVM
  add some hundreds. A limit of files that JMX tells as unlimited isn't judged. Limits of the whole machine (fs.file-max)
  aren't seen. What nobody uses is known of the first topics that topic_abandoned and changelog_abandoned named.
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

grown as (
  select
    b.cluster,
    b.endpoint,
    count(h.open_file_descriptors) as known_hours,
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

judged as (
  select
    b.*,
    s.growth_per_hour,
    case when g.known_hours >= :least_history and s.growth_per_hour > 0 and b.used_ratio is not null
      then greatest(b.max_file_descriptors - b.open_file_descriptors, 0) / s.growth_per_hour
    end as hours_to_full
  from broker as b
  left join grown as g on b.cluster = g.cluster and b.endpoint = g.endpoint
  -- Null if either isn't known: least() alone would take the other.
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
    from judged as j
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
    when j.samples is null then 'silent'
    when j.process_started_at > j.hour + make_interval(mins => 60 - cast(:start_minutes as integer)) then 'starting'
    when j.used_ratio >= :critical_ratio then 'nearly_full'
    when j.maps_ratio >= :critical_ratio then 'maps_high'
    when j.hours_to_full <= :hours_ahead then 'filling'
    when j.maps_ratio >= :high_ratio then 'maps_high'
    when j.used_ratio >= :high_ratio then 'high'
    when j.used_ratio is null then 'untold'
    else 'room'
  end as reason,
  case when j.maps_ratio >= :critical_ratio then 'critical' end as severity,
  j.cluster,
  coalesce(j.broker_id::text, j.endpoint) as broker_id,
  j.endpoint,
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
  -- Twice what it takes; 262,144 is what is usually set.
  greatest(262144, 2 * j.maps) as advised_maps
from judged as j
left join topics as t on j.cluster = t.cluster and j.endpoint = t.endpoint

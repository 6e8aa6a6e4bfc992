/*
title: Broker runs out of file descriptors
about: broker
owner: platform
maturity: stable
reads: [metrics.broker_hourly, metrics.broker_topic_sample]
params:
  high_ratio: {default: 0.75, unit: ratio, why: "a broker that takes over a dead peer's leaders opens more at once"}
  critical_ratio: {default: 0.9, unit: ratio, why: "without a free one it accepts no connection and rolls no segment: it fails its log directory"}
  hours_ahead: {default: 24, unit: h, why: "a day to raise a limit before it is reached"}
  least_history: {default: 48, unit: h, why: "in fewer hours a single step looks like growth"}
  start_minutes: {default: 60, unit: min, why: "clients all come back at once, and log recovery opens what it closes again"}
convinces: [open_file_descriptors, max_file_descriptors, hours_to_full, partitions, largest_topics]
says:
  nearly_full:
    status: alarm
    severity: critical
    reason: "{{ open_file_descriptors }} of {{ max_file_descriptors }} files are open, {{ used_ratio }}."
    cure: &cure "Raise the limit of open files to {{ advised_file_descriptors }}: with prlimit at once, in the unit of systemd for the next start. Segments are most of them: larger segment.bytes or segment.ms for the largest topics, fewer partitions."
    commands: &commands
      - "prlimit --pid \"$(pgrep -f kafka.Kafka)\" --nofile={{ advised_file_descriptors }}:{{ advised_file_descriptors }}"
      - "systemctl edit kafka  # [Service] LimitNOFILE={{ advised_file_descriptors }}"
  filling:
    status: alarm
    severity: critical
    reason: "{{ open_file_descriptors }} of {{ max_file_descriptors }} files are open and {{ growth_per_hour }} more each hour: none is left in {{ hours_to_full }}."
    cure: "Look at what grows: connections that nobody closes, or segments. {% if used_ratio > 0.5 %}Raise the limit of open files to {{ advised_file_descriptors }} meanwhile.{% endif %}"
    commands:
      - "lsof -n -p \"$(pgrep -f kafka.Kafka)\" | awk '{print $5}' | sort | uniq -c | sort -rn"
      - "prlimit --pid \"$(pgrep -f kafka.Kafka)\" --nofile={{ advised_file_descriptors }}:{{ advised_file_descriptors }}"
  high:
    status: alarm
    severity: warning
    reason: "{{ open_file_descriptors }} of {{ max_file_descriptors }} files are open, {{ used_ratio }}."
    cure: *cure
    commands: *commands
  room: {status: ok, reason: "{{ open_file_descriptors }} of {{ max_file_descriptors }} files are open, {{ used_ratio }}."}
  starting: {status: skip, reason: "It was started at {{ process_started_at }}: its open files have not settled."}
  silent: {status: skip, reason: "The broker did not answer over JMX."}
  untold: {status: skip, reason: "The broker did not tell its open files, or their limit."}
causes:
  limits_end_broker: [nearly_full, filling, high]
open_after_hours: 1
clear_after_hours: 2
rule: |
  Open files as a share of the limit, the largest sample. Ahead: the slope (Theil and Sen) of the last 7 days and that of
  the last 24 hours, since the broker's start; the smaller of the two must fill the limit within hours_ahead, so that
  neither a burst nor a step counts as growth.
runbook: |
  1. Raise the limit of the running process with prlimit, and of the unit (LimitNOFILE) for the next start.
  2. What are they? Sockets in CLOSE_WAIT or thousands of connections of one client: that client. Else segments: three
     files each (log, index, time index), for as long as they are retained.
  3. Topics with many small segments: raise segment.bytes or segment.ms. Topics that nobody needs: remove them.
  4. vm.max_map_count must hold two maps for each segment: it ends a broker before the limit of files does.
blind_spots: |
  Memory maps and segments aren't gathered: only files are judged, and topics are named by size. A limit that JMX tells as
  unlimited isn't judged. Limits of the whole machine (fs.file-max) aren't seen.
*/
with broker as (
  select
    b.*,
    open_file_descriptors / nullif(greatest(max_file_descriptors, 0), 0) as used_ratio
  from metrics.broker_hourly as b
  where b.hour = cast(:hour as timestamptz)
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
    case when g.known_hours >= :least_history and s.growth_per_hour > 0
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

topics as (
  select
    cluster,
    endpoint,
    jsonb_agg(jsonb_build_object('topic', topic, 'log_bytes', log_bytes) order by place) as largest_topics
  from (
    select
      s.cluster,
      s.endpoint,
      s.topic,
      s.log_bytes,
      row_number() over (partition by s.cluster, s.endpoint order by s.log_bytes desc, s.topic asc) as place
    from judged as j
    inner join metrics.broker_topic_sample as s on j.hour = s.hour and j.cluster = s.cluster and j.endpoint = s.endpoint
    where s.hour = cast(:hour as timestamptz) and s.log_bytes is not null
    and (j.used_ratio >= least(:high_ratio, :critical_ratio) or j.hours_to_full <= :hours_ahead)
  ) as ranked
  where place <= 5
  group by cluster, endpoint
)

select
  case
    when j.samples is null then 'silent'
    when j.used_ratio is null then 'untold'
    when j.process_started_at > j.hour + make_interval(mins => 60 - cast(:start_minutes as integer)) then 'starting'
    when j.used_ratio >= :critical_ratio then 'nearly_full'
    when j.hours_to_full <= :hours_ahead then 'filling'
    when j.used_ratio >= :high_ratio then 'high'
    else 'room'
  end as because,
  j.cluster,
  coalesce(j.broker_id::text, j.endpoint) as broker_id,
  j.endpoint,
  j.instance_id,
  j.open_file_descriptors,
  j.max_file_descriptors,
  j.used_ratio,
  j.growth_per_hour,
  j.hours_to_full,
  j.partitions,
  t.largest_topics,
  j.process_started_at,
  greatest(100000, 2 * j.max_file_descriptors) as advised_file_descriptors
from judged as j
left join topics as t on j.cluster = t.cluster and j.endpoint = t.endpoint

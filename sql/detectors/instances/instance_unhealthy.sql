/*
title: Machines fail
resource_kind: machines
owner_role: platform
maturity: stable
reads: [metrics.instance_health_hourly, metrics.scaling_activity_hourly, metrics.instance_sample, metrics.instance_hourly, metrics.node_hourly, metrics.jvm_app_hourly]
params:
  memory_percent: {default: 85, unit: "%", why: "above it the page cache is gone; what is available counts, not what is free"}
  cpu_percent: {default: 90, unit: "%", why: "then health checks time out"}
  full_minutes: {default: 15, unit: minutes, why: "a deploy, a collection or a start takes less"}
  least_failed_minutes: {default: 5, unit: minutes, why: "a reboot takes less; Auto Scaling waits for about as long"}
  least_iowait_ratio: {default: 0.02, unit: ratio, why: "of the hour: a minute of waiting for pages that were thrown away; a CPU that computes waits for none"}
  habit_hours: {default: 3, unit: hours, why: "of the week before: what it bore so often doesn't end it"}
  look_back_hours: {default: 24, unit: h, why: "so long somebody should know that a machine was replaced"}
  health_causes: {default: "in response to an? (EC2 instance status checks? failure|EC2 health check|[^.]*health[- ]?check|[^.]*status check)", unit: regex, why: "AWS's words where a check failed; deploys, refreshes, scale-in and schedules have others"}
  ended_causes: {default: "terminated or stopped", unit: regex, why: "a person, spot, or the system itself: only what went before tells which"}
key_metrics: [taken_out_instances, taken_out_at, memory_short_at, cpu_full_at, failed_minutes]
verdicts:
  out_of_memory:
    status: firing
    severity: critical
    message: &out "{{ taken_out_instances | counted('instance') }} {{ 'was' if taken_out_instances == 1 else 'were' }} taken out of service by health checks within {{ look_back_hours }}, {{ instance_id }} last, at {{ taken_out_at }}.{% if memory_short_at %} It was short of memory from {{ memory_short_at }} on{% endif %}{% if memory_short_at and cpu_full_at %}, and{% endif %}{% if cpu_full_at %} its CPU was full from {{ cpu_full_at }} on{% endif %}{% if memory_short_at or cpu_full_at %}.{% endif %}"
    actions:
      - &memory "Memory went first: give it more, or give what runs on it less{% if process %}: {{ process }} holds {{ resident_bytes }}{% endif %}. A larger group fails as well, one by one."
    commands: &look
      - "{% if scaling_group %}aws autoscaling describe-scaling-activities --region {{ region }} --auto-scaling-group-name {{ scaling_group }} --max-items 20{% endif %}"
      - "aws ec2 get-console-output --region {{ region }} --instance-id {{ instance_id }} --latest --output text"
  taken_out:
    status: firing
    severity: critical
    message: *out
    actions:
      - "{% if cpu_full_at %}Its CPU was full before memory was short: see what computed, and whether the check waits long enough for a busy machine.{% else %}AWS says: {{ cause }} Nothing that was gathered went before: look at the application's own log of these minutes, and at what the check asks.{% endif %}"
    commands: *look
  checks_fail:
    status: firing
    severity: critical
    message: "{{ failing_instances | counted('instance') }} {{ 'fails' if failing_instances == 1 else 'fail' }} EC2's status checks: {{ instance_id }} since {{ failing_since }}, {% if failed_check.value == 'system' %}AWS's hardware under it{% elif failed_check.value == 'volumes' %}its volumes can't be reached{% else %}its own system doesn't answer{% endif %}."
    actions:
      - "{% if failed_check.value == 'system' %}Stop and start it: it moves to other hardware. A reboot doesn't move it.{% elif failed_check.value == 'volumes' %}Its volumes are out of reach: look at AWS's Health Dashboard; stop and start it, or fail over.{% else %}Its kernel or its network hangs: look at the console's output, then reboot it.{% endif %}"
    commands: &status
      - "aws ec2 describe-instance-status --region {{ region }} --instance-ids {{ instance_id }}"
      - "aws ec2 get-console-output --region {{ region }} --instance-id {{ instance_id }} --latest --output text"
  exhausting:
    status: firing
    severity: warning
    message: "{{ exhausting_instances | counted('instance') }} {{ 'runs' if exhausting_instances == 1 else 'run' }} out of memory and then of CPU: {{ instance_id }} has {% if memory_short_at %}been short of memory since {{ memory_short_at }}{% else %}had no memory left for two hours{% endif %}, and its CPU has been full since {{ cpu_full_at }}{% if iowait_ratio %}; {{ iowait_ratio }} of the hour it waited for disks{% endif %}. Health checks fail next."
    actions:
      - *memory
    commands: ["aws ssm start-session --region {{ region }} --target {{ instance_id }}"]
  ended: {status: ok, message: "{{ ended_instances | counted('instance') }} {{ 'was' if ended_instances == 1 else 'were' }} ended by somebody, or by AWS (spot): nothing went short before."}
  bears_it: {status: ok, message: "{{ instance_id }} is short of memory while its CPU is full, as in {{ borne_hours }} of the week before, and lives."}
  busy: {status: ok, message: "The CPU of {{ instance_id }} has been full since {{ cpu_full_at }}, but it isn't short of memory, or waits for no disk: it computes."}
  well: {status: ok, message: "{{ instances | counted('instance') }}: status checks pass, none was taken out of service by a check within {{ look_back_hours }}."}
  unchecked: {status: unknown, message: "CloudWatch did not tell its status checks."}
  activities_unknown: {status: unknown, message: "Auto Scaling did not tell whether it took instances out of service."}
  memory_untold: {status: unknown, message: "Status checks pass; of {{ untold_instances | counted('instance') }} nobody tells the memory: neither CloudWatch's agent nor a node exporter."}
causes:
  instance_failure_stops_broker: [out_of_memory, taken_out, checks_fail, exhausting]
open_after_hours: 1
clear_after_hours: 2
description: |
  Machines that stand for one another: an Auto Scaling group, else instances with the same tag application, else one.

  After: Auto Scaling terminated one of them within look_back_hours, and says that a health check failed (health_causes).
  Of those that were ended (ended_causes), by a person, by spot or by their own system, only those that were short of
  memory before and aren't spot. Which resource went first is told by the minutes of the two hours before.

  Now: a status check of EC2 fails, for least_failed_minutes up to the last that is known.

  Before: an instance's CPU is at cpu_percent for full_minutes, and its memory was at memory_percent before that and
  stays there. Where a node exporter tells that it waits for no disk (least_iowait_ratio), it computes; where none tells, and
  it bore the same in habit_hours of the week before, it will again.
runbook: |
  1. Memory first: which process, and since when does it grow? app_memory_heavy says what its parts are.
  2. CPU first: a check that gives a busy machine no time makes a slow hour an outage; raise its timeout or its threshold.
  3. Neither: the application's log and the load balancer's target health say what the check asked.
  4. A check of AWS's hardware: stop and start, don't reboot.
limitations: |
  Memory without CloudWatch's agent or a node exporter, whose minutes lie hours apart. What a load balancer's or one's own
  health check asked. CPU of basic monitoring comes every five minutes. Machines outside of Auto Scaling that somebody ends.
*/
with machine as materialized (
  select *
  from metrics.instance_health_hourly
  where hour = :hour
),

-- Taken away within the day: by a check, or ended by something else.
gone as materialized (
  select
    a.account,
    a.region,
    a.scaling_group as machines,
    a.scaling_group,
    a.instance_id,
    a.cause,
    a.started_at,
    a.cause ~ :ended_causes as is_ended,
    (
      select bool_or(h.is_spot)
      from metrics.instance_health_hourly as h
      where h.account = a.account and h.region = a.region and h.instance_id = a.instance_id
      and h.hour > a.hour - interval '24 hours' and h.hour <= a.hour
    ) as is_spot
  from metrics.scaling_activity_hourly as a
  where a.hour > :hour - make_interval(hours => cast(:look_back_hours as integer))
  and a.hour <= :hour
  and a.is_termination and a.instance_id is not null and a.status not in ('Failed', 'Cancelled')
  and (a.cause ~ :health_causes or a.cause ~ :ended_causes)
),

watched as (
  select
    account,
    region,
    instance_id,
    true as is_gone,
    started_at - interval '2 hours' as from_at,
    started_at as until_at
  from gone
  union all
  select
    account,
    region,
    instance_id,
    false as is_gone,
    hour - interval '1 hour' as from_at,
    hour + interval '1 hour' as until_at
  from machine
  where state = 'running'
),

-- A point stands until the next, five minutes at most (basic monitoring).
reading as materialized (
  select
    w.account,
    w.region,
    w.instance_id,
    w.is_gone,
    w.until_at,
    r.resource_name,
    s.at,
    r.percent >= r.limit_percent as is_full,
    least(
      lead(s.at) over (partition by w.account, w.region, w.instance_id, w.is_gone, r.resource_name order by s.at),
      s.at + interval '5 minutes', w.until_at
    ) as to_at
  from watched as w
  inner join metrics.instance_sample as s
    on w.account = s.account and w.region = s.region and w.instance_id = s.instance_id
    and w.from_at <= s.at and w.until_at > s.at
  cross join lateral (
    values
    ('cpu', s.cpu_percent, cast(:cpu_percent as double precision)), ('memory', s.memory_used_percent, :memory_percent)
  ) as r (resource_name, percent, limit_percent)
  where s.at > :hour - interval '27 hours'
  and r.percent is not null
),

stretch as materialized (
  select
    account,
    region,
    instance_id,
    is_gone,
    resource_name,
    until_at,
    min(at) as since,
    max(to_at) as upto
  from (
    select
      *,
      count(*) filter (where not is_full)
        over (partition by account, region, instance_id, is_gone, resource_name order by at) as breaks
    from reading
  ) as counted
  where is_full
  group by account, region, instance_id, is_gone, resource_name, until_at, breaks
),

-- What was short when it ended, and since when.
before as (
  select
    account,
    region,
    instance_id,
    until_at,
    min(since) filter (where resource_name = 'memory') as memory_short_at,
    min(since) filter (where resource_name = 'cpu') as cpu_full_at
  from stretch
  where is_gone and upto > until_at - make_interval(mins => cast(:full_minutes as integer))
  group by account, region, instance_id, until_at
),

taken_out as (
  select
    g.*,
    b.memory_short_at,
    b.cpu_full_at,
    coalesce(b.memory_short_at <= b.cpu_full_at, b.memory_short_at is not null) as is_memory_first
  from gone as g
  left join before as b
    on g.account = b.account and g.region = b.region and g.instance_id = b.instance_id and g.started_at = b.until_at
),

failed as (
  select
    account,
    region,
    machines,
    count(*) filter (where is_by_check) as taken_out_instances,
    count(*) filter (where not is_by_check) as ended_instances,
    (array_agg(to_jsonb(t) order by started_at desc, instance_id asc) filter (where is_by_check))[1] as newest,
    array_agg(public.resource_key('instance', account, region, instance_id) order by started_at desc, instance_id asc)
      filter (where is_by_check) as affected
  from (
    select
      *,
      not is_ended or (is_memory_first and is_spot is not true) as is_by_check
    from taken_out
  ) as t
  group by account, region, machines
),

node as (
  select
    instance_id,
    max(memory_used_mean_percent) filter (where hour = :hour) as memory_percent,
    min(memory_used_mean_percent) as least_memory_percent,
    max(iowait_ratio) filter (where hour = :hour) as iowait_ratio
  from metrics.node_hourly
  where hour in (:hour, :hour - interval '1 hour') and instance_id is not null
  group by instance_id
),

memory_told as materialized (
  select distinct
    account,
    region,
    instance_id
  from reading
  where resource_name = 'memory' and not is_gone
),

-- Instances whose CPU is full now, with the memory that was short before.
full_now as (
  select
    c.account,
    c.region,
    c.instance_id,
    c.since as cpu_full_at,
    m.since as memory_short_at,
    n.iowait_ratio,
    m.since is not null or (t.instance_id is null and n.least_memory_percent >= :memory_percent) as is_short
  from stretch as c
  left join stretch as m
    on c.account = m.account and c.region = m.region and c.instance_id = m.instance_id
    and m.resource_name = 'memory' and not m.is_gone and c.since >= m.since and c.upto - interval '5 minutes' <= m.upto
  left join memory_told as t on c.account = t.account and c.region = t.region and c.instance_id = t.instance_id
  left join node as n on c.instance_id = n.instance_id
  where c.resource_name = 'cpu' and not c.is_gone and c.upto > :hour + interval '45 minutes'
  and c.upto - c.since >= make_interval(mins => cast(:full_minutes as integer))
),

habit as (
  select
    f.account,
    f.region,
    f.instance_id,
    count(*) as borne_hours
  from full_now as f
  inner join metrics.instance_hourly as h
    on f.account = h.account and f.region = h.region and f.instance_id = h.instance_id
    and h.hour >= :hour - interval '7 days' and h.hour < :hour - interval '2 hours'
  where h.memory_used_max_percent >= :memory_percent and h.cpu_max_percent >= :cpu_percent
  group by f.account, f.region, f.instance_id
),

judged as (
  select
    m.account,
    m.region,
    m.machines,
    m.instance_id,
    m.scaling_group,
    m.minutes_checked,
    m.activities_known,
    m.failing_since,
    case
      when m.minutes_system_failed > 0 then 'system'
      when m.minutes_volumes_failed > 0 then 'volumes'
      else 'instance'
    end as failed_check,
    greatest(m.minutes_instance_failed, m.minutes_system_failed, m.minutes_volumes_failed) as failed_minutes,
    f.cpu_full_at,
    f.memory_short_at,
    f.iowait_ratio,
    b.borne_hours,
    n.memory_percent is null and t.instance_id is null as is_untold,
    case
      when m.state <> 'running' then 'not_running'
      when m.failing_since is not null
      and greatest(m.minutes_instance_failed, m.minutes_system_failed, m.minutes_volumes_failed) >= :least_failed_minutes
        then 'checks_fail'
      when f.is_short and coalesce(f.iowait_ratio >= :least_iowait_ratio, coalesce(b.borne_hours, 0) < :habit_hours)
        then 'exhausting'
      when f.is_short and f.iowait_ratio is null then 'bears_it'
      when f.cpu_full_at is not null then 'busy'
      when m.minutes_checked is null or m.minutes_checked = 0 then 'unchecked'
      else 'well'
    end as said
  from machine as m
  left join full_now as f on m.account = f.account and m.region = f.region and m.instance_id = f.instance_id
  left join habit as b on m.account = b.account and m.region = b.region and m.instance_id = b.instance_id
  left join memory_told as t on m.account = t.account and m.region = t.region and m.instance_id = t.instance_id
  left join node as n on m.instance_id = n.instance_id
),

-- Of machines that stand for one another the worst speaks.
open_finding as (
  select
    account,
    region,
    machines,
    min(scaling_group) as scaling_group,
    count(*) filter (where said <> 'not_running') as instances,
    bool_and(activities_known) as are_activities_known,
    count(*) filter (where said = 'checks_fail') as failing_instances,
    count(*) filter (where said = 'exhausting') as exhausting_instances,
    count(*) filter (where said = 'unchecked') as unchecked_instances,
    count(*) filter (where is_untold and said = 'well') as untold_instances,
    (array_agg(to_jsonb(j) order by
      array_position(array['checks_fail', 'exhausting', 'bears_it', 'busy'], said), failing_since, cpu_full_at, instance_id
    ) filter (where said in ('checks_fail', 'exhausting', 'bears_it', 'busy')))[1] as worst,
    array_agg(public.resource_key('instance', account, region, instance_id) order by instance_id)
      filter (where said in ('checks_fail', 'exhausting')) as affected
  from judged as j
  group by account, region, machines
),

told as (
  select
    coalesce(s.account, f.account) as account,
    coalesce(s.region, f.region) as region,
    coalesce(s.machines, f.machines) as machines,
    coalesce(s.scaling_group, f.newest ->> 'scaling_group') as scaling_group,
    coalesce(s.instances, 0) as instances,
    f.taken_out_instances,
    f.ended_instances,
    f.newest,
    s.failing_instances,
    s.exhausting_instances,
    s.untold_instances,
    s.worst,
    case
      when f.taken_out_instances > 0 and (f.newest ->> 'is_memory_first')::boolean then 'out_of_memory'
      when f.taken_out_instances > 0 then 'taken_out'
      when s.failing_instances > 0 then 'checks_fail'
      when s.exhausting_instances > 0 then 'exhausting'
      when s.scaling_group is not null and not s.are_activities_known then 'activities_unknown'
      when s.unchecked_instances > 0 then 'unchecked'
      when s.worst ->> 'said' = 'bears_it' then 'bears_it'
      when s.worst ->> 'said' = 'busy' then 'busy'
      when f.ended_instances > 0 then 'ended'
      when s.untold_instances > 0 then 'memory_untold'
      else 'well'
    end as reason,
    (f.affected || s.affected)[:20] as affected
  from open_finding as s
  full join failed as f on s.account = f.account and s.region = f.region and s.machines = f.machines
),

spoken as (
  select
    *,
    case when reason in ('out_of_memory', 'taken_out') then newest else worst end as one
  from told
  where instances > 0 or taken_out_instances is not null
)

select
  s.reason,
  s.account,
  s.region,
  s.machines,
  s.scaling_group,
  s.instances,
  s.taken_out_instances,
  s.ended_instances,
  (s.newest ->> 'started_at')::timestamptz as taken_out_at,
  s.newest ->> 'cause' as cause,
  s.failing_instances,
  s.exhausting_instances,
  s.untold_instances,
  s.one ->> 'instance_id' as instance_id,
  (s.one ->> 'memory_short_at')::timestamptz as memory_short_at,
  (s.one ->> 'cpu_full_at')::timestamptz as cpu_full_at,
  (s.one ->> 'iowait_ratio')::double precision as iowait_ratio,
  (s.one ->> 'borne_hours')::double precision as borne_hours,
  s.worst ->> 'failed_check' as failed_check,
  (s.worst ->> 'failing_since')::timestamptz as failing_since,
  (s.worst ->> 'failed_minutes')::double precision as failed_minutes,
  p.app as process,
  p.resident_bytes,
  to_jsonb(s.affected) as affected
from spoken as s
left join lateral (
  select j.app, j.resident_bytes
  from metrics.jvm_app_hourly as j
  where s.reason in ('out_of_memory', 'exhausting')
  and j.hour > :hour - make_interval(hours => cast(:look_back_hours as integer))
  and j.hour <= :hour
  and j.instance_id = s.one ->> 'instance_id' and j.resident_bytes is not null
  order by j.hour desc, j.resident_bytes desc, j.app asc
  limit 1
) as p on true

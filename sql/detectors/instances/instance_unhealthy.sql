/*
title: Instances failing health checks
resource_kind: instances
owner_role: platform
maturity: stable
is_mutation_tested: false
reads:
  - metrics.instance_health_hourly
  - metrics.scaling_activity_hourly
  - metrics.instance_sample
  - metrics.instance_hourly
  - metrics.node_hourly
  - metrics.jvm_app_hourly
params:
  memory_percent: {default: 85, unit: "%", why: "above it no page cache is left; available memory counts, not free memory"}
  cpu_percent: {default: 90, unit: "%", why: "above it health checks time out"}
  full_minutes: {default: 15, unit: minutes, why: "a deployment, a garbage collection, or a start takes less"}
  least_failed_minutes: {default: 5, unit: minutes, why: "a reboot takes less; Auto Scaling waits about as long"}
  least_iowait_ratio:
    default: 0.02
    unit: ratio
    why: "of the hour: a minute of waiting for evicted pages; a CPU-bound instance waits for none"
  recurring_hours: {default: 3, unit: hours, why: "of the week before: a state that the instance survived so often is no sign of a failure"}
  look_back_hours: {default: 24, unit: h, why: "for a day, someone should notice that an instance was replaced"}
  health_causes:
    default: "in response to an? (EC2 instance status checks? failure|EC2 health check|[^.]*health[- ]?check|[^.]*status check)"
    unit: regex
    why: "AWS's wording for failed checks; deployments, instance refreshes, scale-in, and schedules have another"
  ended_causes: {default: "terminated or stopped", unit: regex, why: "a user, spot, or the instance's own system; only earlier metrics show which"}
key_metrics: [terminated_instances, terminated_at, memory_short_at, cpu_full_at, failed_minutes]
verdicts:
  out_of_memory:
    status: firing
    severity: critical
    message: >-
      Auto Scaling terminated {{ terminated_instances | counted('instance') }} of {{ name }} after failed health checks, last
      {{ instance_id }} at {{ terminated_at }}; memory was exhausted first.
    details: &before
      - "{% if memory_short_at %}Memory of {{ instance_id }} was above {{ memory_percent }} since {{ memory_short_at }}.{% endif %}"
      - "{% if cpu_full_at %}CPU of {{ instance_id }} was above {{ cpu_percent }} since {{ cpu_full_at }}.{% endif %}"
      - &process "{% if process %}The largest process was {{ process }} with {{ resident_bytes }}.{% endif %}"
    impact: "Replacements run out of memory as well; each one restores its state and triggers a rebalance."
    actions: &memory
      - >-
        {% if process %}Reduce the memory of {{ process }}: its heap, its RocksDB cache, or its number of tasks per
        instance.{% endif %}
      - "Change to an instance type with more memory. More instances of this type fail one after the other."
    commands: &activities
      - >-
        {% if scaling_group %}aws autoscaling describe-scaling-activities --region {{ region }}
        --auto-scaling-group-name {{ scaling_group }} --max-items 20{% endif %}
      - "aws ec2 get-console-output --region {{ region }} --instance-id {{ instance_id }} --latest --output text"
  health_check_failed:
    status: firing
    severity: critical
    message: >-
      Auto Scaling terminated {{ terminated_instances | counted('instance') }} of {{ name }} after failed health checks, last
      {{ instance_id }} at {{ terminated_at }}.
    details:
      - "{% if memory_short_at %}Memory of {{ instance_id }} was above {{ memory_percent }} since {{ memory_short_at }}.{% endif %}"
      - "{% if cpu_full_at %}CPU of {{ instance_id }} was above {{ cpu_percent }} since {{ cpu_full_at }}.{% endif %}"
      - "AWS reports: {{ cause }}"
    impact: "Replacements fail in the same way; each one restores its state and triggers a rebalance."
    actions:
      - "{% if cpu_full_at %}Find what used the CPU: a restore, a backfill, or the regular load.{% endif %}"
      - >-
        {% if cpu_full_at %}Raise the timeout or the unhealthy threshold of the health check, so that a busy instance
        passes.{% endif %}
      - >-
        {% if not cpu_full_at %}Read the application's log of these minutes, and find what the health check
        requests.{% endif %}
    commands: *activities
  status_check_failed:
    status: firing
    severity: critical
    message: >-
      EC2 status checks of {{ failing_instances | counted('instance') }} of {{ name }} fail: {{ instance_id }} since
      {{ failing_since }} ({{ failed_check }} check).
    details:
      - "{% if failed_check == 'system' %}AWS's hardware or network below the instance is impaired.{% endif %}"
      - "{% if failed_check == 'volumes' %}The EBS volumes of the instance are not reachable.{% endif %}"
      - "{% if failed_check == 'instance' %}The operating system of the instance does not respond.{% endif %}"
    impact: "Brokers or stream tasks on the instance are down or hang until it recovers or is replaced."
    actions:
      - >-
        {% if failed_check == 'system' %}Stop and start the instance: it moves to other hardware. A reboot does not move it.
        Data on instance store volumes is lost.{% endif %}
      - >-
        {% if failed_check == 'volumes' %}Check the AWS Health Dashboard; fail over, or stop and start the
        instance.{% endif %}
      - >-
        {% if failed_check == 'instance' %}Read the console output (kernel panic, out of memory, network), then reboot the
        instance.{% endif %}
    commands:
      - "aws ec2 describe-instance-status --region {{ region }} --instance-ids {{ instance_id }}"
      - "aws ec2 get-console-output --region {{ region }} --instance-id {{ instance_id }} --latest --output text"
  memory_pressure:
    status: firing
    severity: warning
    message: >-
      Memory and then CPU of {{ memory_short_instances | counted('instance') }} of {{ name }} are exhausted:
      {{ instance_id }}, CPU above {{ cpu_percent }} since {{ cpu_full_at }}.
    details:
      - "{% if memory_short_at %}Memory has been above {{ memory_percent }} since {{ memory_short_at }}.{% endif %}"
      - "{% if not memory_short_at %}Memory has been above {{ memory_percent }} for two hours.{% endif %}"
      - "{% if iowait_ratio %}CPU waited for disks for {{ iowait_ratio }} of the hour.{% endif %}"
      - *process
    impact: "Health checks fail next: the instance is replaced, restores its state, and triggers a rebalance."
    actions: *memory
    commands: ["aws ssm start-session --region {{ region }} --target {{ instance_id }}"]
  terminated_externally:
    status: ok
    message: >-
      {{ external_terminations | counted('instance') }} of {{ name }} {{ external_terminations | plural('was', 'were') }}
      terminated by a user or by AWS (spot), without memory pressure before.
  tolerated_pressure:
    status: ok
    message: >-
      Memory and CPU of instance {{ instance_id }} are exhausted, as in {{ tolerated_hours }} of the week before, without a
      failure.
  cpu_busy:
    status: ok
    message: >-
      CPU of instance {{ instance_id }} has been above {{ cpu_percent }} since {{ cpu_full_at }}, without memory pressure.
  healthy:
    status: ok
    message: >-
      Status checks of {{ instances | counted('instance') }} pass; no health check led to a termination within
      {{ look_back_hours }}.
  status_checks_missing:
    status: unknown
    message: "Not evaluated: CloudWatch returned no status checks for an instance of {{ name }}."
  scaling_activities_unknown:
    status: unknown
    message: "Not evaluated: Auto Scaling did not return the activities of group {{ name }}."
  memory_not_reported:
    status: unknown
    message: >-
      Not evaluated: memory of {{ unreported_instances | counted('instance') }} of {{ name }} was reported neither by the
      CloudWatch agent nor by node exporter.
    details: ["Their status checks pass."]
causes:
  instance_failure_stops_broker: [out_of_memory, health_check_failed, status_check_failed, memory_pressure]
open_after_hours: 1
clear_after_hours: 2
description: |
  Instances are grouped by Auto Scaling group, else by the same tag application; otherwise each is a group of its own.

  Terminated: Auto Scaling terminated an instance within look_back_hours and reports a failed health check
  (health_causes). Instances terminated by a user, by spot, or by their own system (ended_causes) count only if they are
  not spot and memory was short before. The minutes of the two hours before show which resource was exhausted first.

  Failing: an EC2 status check fails for least_failed_minutes, up to the last known minute.

  Before a failure: CPU is at cpu_percent for full_minutes, and memory was at memory_percent before and stays there. If
  node exporter reports less I/O wait than least_iowait_ratio, the instance is CPU-bound and does not fire. If nothing
  reports I/O wait, an instance that survived the same in recurring_hours of the week before does not fire.
runbook: |
  ## Meaning
  Instances of this group were terminated after failed health checks, fail EC2 status checks, or will do so soon.

  ## Impact
  Brokers or stream tasks on the instance are lost; replacements restore state and trigger rebalances.

  ## Diagnosis
  1. Memory exhausted first: find the process and when its growth began; app_memory_heavy lists its parts.
  2. CPU exhausted first: check whether the health check's timeout is too short for a busy instance.
  3. Neither: read the application's log and the load balancer's target health.

  ## Mitigation
  1. Failed system check: stop and start the instance; a reboot does not move it to other hardware. A stop deletes the data
     on instance store volumes, and releases a public IP address that is not an Elastic IP.
  2. Memory: give processes less, or use a larger instance type.
  3. CPU: raise the timeout or the threshold of the health check.
limitations: |
  Memory is unknown without CloudWatch agent or node exporter, and the data points of the latter are minutes apart. What a
  load balancer's or a custom health check requests is unknown. With basic monitoring, CPU has one data point every five
  minutes. Terminations by users outside of Auto Scaling are not covered.
*/
-- MSK replaces its brokers' instances itself, and exposes no status checks.
with instance as materialized (
  select *
  from metrics.instance_health_hourly
  where hour = :hour and instance_id not like 'msk-%'
),

failed_group as (
  select
    account,
    region,
    scaling_group,
    count(*) filter (where is_by_check) as terminated_instances,
    count(*) filter (where not is_by_check) as external_terminations,
    (array_agg(to_jsonb(t) order by started_at desc, instance_id asc) filter (where is_by_check))[1] as newest,
    array_agg(public.resource_key('instance', account, region, instance_id) order by started_at desc, instance_id asc)
      filter (where is_by_check) as affected
  from public.terminated_instances(
    :hour, cast(:look_back_hours as integer), :health_causes, :ended_causes, :cpu_percent, :memory_percent,
    cast(:full_minutes as integer)
  ) as t
  group by account, region, scaling_group
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

memory_reported as materialized (
  select distinct
    account,
    region,
    instance_id
  from metrics.instance_sample
  where at >= :hour - interval '1 hour' and at < :hour + interval '1 hour' and memory_used_percent is not null
),

-- Instances with exhausted CPU now, and the memory that was exhausted before.
full_now as (
  select
    f.*,
    n.iowait_ratio,
    f.memory_short_at is not null or (t.instance_id is null and n.least_memory_percent >= :memory_percent) as is_short
  from public.instances_exhausted(:hour, :cpu_percent, :memory_percent, cast(:full_minutes as integer)) as f
  left join memory_reported as t on f.account = t.account and f.region = t.region and f.instance_id = t.instance_id
  left join node as n on f.instance_id = n.instance_id
),

tolerated as (
  select
    f.account,
    f.region,
    f.instance_id,
    count(*) as tolerated_hours
  from full_now as f
  inner join metrics.instance_hourly as h
    on f.account = h.account and f.region = h.region and f.instance_id = h.instance_id
    and h.hour >= :hour - interval '7 days' and h.hour < :hour - interval '2 hours'
  where h.memory_used_max_percent >= :memory_percent and h.cpu_max_percent >= :cpu_percent
  group by f.account, f.region, f.instance_id
),

evaluated as (
  select
    m.account,
    m.region,
    m.instance_group,
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
    b.tolerated_hours,
    n.memory_percent is null and t.instance_id is null as is_memory_unreported,
    case
      when m.state <> 'running' then 'not_running'
      when m.failing_since is not null
      and greatest(m.minutes_instance_failed, m.minutes_system_failed, m.minutes_volumes_failed) >= :least_failed_minutes
        then 'status_check_failed'
      when f.is_short and coalesce(f.iowait_ratio >= :least_iowait_ratio, coalesce(b.tolerated_hours, 0) < :recurring_hours)
        then 'memory_pressure'
      when f.is_short and f.iowait_ratio is null then 'tolerated_pressure'
      when f.cpu_full_at is not null then 'cpu_busy'
      when m.minutes_checked is null or m.minutes_checked = 0 then 'status_checks_missing'
      else 'healthy'
    end as finding
  from instance as m
  left join full_now as f on m.account = f.account and m.region = f.region and m.instance_id = f.instance_id
  left join tolerated as b on m.account = b.account and m.region = b.region and m.instance_id = b.instance_id
  left join memory_reported as t on m.account = t.account and m.region = t.region and m.instance_id = t.instance_id
  left join node as n on m.instance_id = n.instance_id
),

-- The worst instance represents its group.
open_finding as (
  select
    account,
    region,
    instance_group,
    min(scaling_group) as scaling_group,
    count(*) filter (where finding <> 'not_running') as instances,
    bool_and(activities_known) as are_activities_known,
    count(*) filter (where finding = 'status_check_failed') as failing_instances,
    count(*) filter (where finding = 'memory_pressure') as memory_short_instances,
    count(*) filter (where finding = 'status_checks_missing') as unchecked_instances,
    count(*) filter (where is_memory_unreported and finding = 'healthy') as unreported_instances,
    (array_agg(to_jsonb(j) order by
      array_position(array['status_check_failed', 'memory_pressure', 'tolerated_pressure', 'cpu_busy'], finding),
      failing_since, cpu_full_at, instance_id
    ) filter (where finding in ('status_check_failed', 'memory_pressure', 'tolerated_pressure', 'cpu_busy')))[1] as worst,
    array_agg(public.resource_key('instance', account, region, instance_id) order by instance_id)
      filter (where finding in ('status_check_failed', 'memory_pressure')) as affected
  from evaluated as j
  group by account, region, instance_group
),

grouped as (
  select
    coalesce(s.account, f.account) as account,
    coalesce(s.region, f.region) as region,
    coalesce(s.instance_group, f.scaling_group) as instance_group,
    coalesce(s.scaling_group, f.newest ->> 'scaling_group') as scaling_group,
    coalesce(s.instances, 0) as instances,
    f.terminated_instances,
    f.external_terminations,
    f.newest,
    s.failing_instances,
    s.memory_short_instances,
    s.unreported_instances,
    s.worst,
    case
      when f.terminated_instances > 0 and (f.newest ->> 'is_memory_first')::boolean then 'out_of_memory'
      when f.terminated_instances > 0 then 'health_check_failed'
      when s.failing_instances > 0 then 'status_check_failed'
      when s.memory_short_instances > 0 then 'memory_pressure'
      when s.scaling_group is not null and not s.are_activities_known then 'scaling_activities_unknown'
      when s.unchecked_instances > 0 then 'status_checks_missing'
      when s.worst ->> 'finding' = 'tolerated_pressure' then 'tolerated_pressure'
      when s.worst ->> 'finding' = 'cpu_busy' then 'cpu_busy'
      when f.external_terminations > 0 then 'terminated_externally'
      when s.unreported_instances > 0 then 'memory_not_reported'
      else 'healthy'
    end as reason,
    (f.affected || s.affected)[:20] as affected
  from open_finding as s
  full join failed_group as f on s.account = f.account and s.region = f.region and s.instance_group = f.scaling_group
)

select
  s.reason,
  s.account,
  s.region,
  s.instance_group,
  s.scaling_group,
  s.instances,
  s.terminated_instances,
  s.external_terminations,
  (s.newest ->> 'started_at')::timestamptz as terminated_at,
  s.newest ->> 'cause' as cause,
  case when s.failing_instances > 0 or s.memory_short_instances > 0 then null else (s.newest ->> 'started_at')::timestamptz end
    as evidence_until,
  s.failing_instances,
  s.memory_short_instances,
  s.unreported_instances,
  w.subject ->> 'instance_id' as instance_id,
  (w.subject ->> 'memory_short_at')::timestamptz as memory_short_at,
  (w.subject ->> 'cpu_full_at')::timestamptz as cpu_full_at,
  (w.subject ->> 'iowait_ratio')::double precision as iowait_ratio,
  (w.subject ->> 'tolerated_hours')::double precision as tolerated_hours,
  s.worst ->> 'failed_check' as failed_check,
  (s.worst ->> 'failing_since')::timestamptz as failing_since,
  (s.worst ->> 'failed_minutes')::double precision as failed_minutes,
  p.app as process,
  p.resident_bytes,
  to_jsonb(s.affected) as affected
from grouped as s
cross join lateral (
  select case when s.reason in ('out_of_memory', 'health_check_failed') then s.newest else s.worst end as subject
) as w
left join lateral (
  select j.app, j.resident_bytes
  from metrics.jvm_app_hourly as j
  where s.reason in ('out_of_memory', 'memory_pressure')
  and j.hour > :hour - make_interval(hours => cast(:look_back_hours as integer))
  and j.hour <= :hour
  and j.instance_id = w.subject ->> 'instance_id' and j.resident_bytes is not null
  order by j.hour desc, j.resident_bytes desc, j.app asc
  limit 1
) as p on true
where s.instances > 0 or s.terminated_instances is not null

-- Pods of Kubernetes in an hour, with the endpoint of their JVM and how their container ended in the last 24 hours.
-- A restart or kill is counted once: by the change of the counter, and by the time at which the previous run ended.
create or replace function inventory.pods(as_of timestamptz) returns table (
  cluster text, endpoint text, pod_namespace text, pod text, pod_broker_id integer, pod_container text,
  pod_workload text,                           -- as kubectl takes it: deployment/fees; null: not one that it rolls out
  pod_strimzi_cluster text, pod_node_pool text,
  pod_owner text, pod_memory_limit_bytes bigint,
  pod_restarts_in_hour bigint, pod_restarts_in_day bigint,  -- null: not reported
  pod_is_in_back_off boolean,                  -- whether the kubelet delays its next start (CrashLoopBackOff)
  pod_exit_reason text, pod_exit_code integer, pod_exited_at timestamptz,  -- of the previous run
  pod_oom_kills bigint,                        -- at least so many in the last 24 hours
  pod_oom_killed_at timestamptz                -- the last one in this hour; null: none
) language sql stable rows 100 as $$
  with day as (
    select
      h.*,
      h.restarts - case
        when lag(h.uid) over pod_hours = h.uid then lag(h.restarts) over pod_hours
        when h.created_at > h.hour then 0
      end as gained
    from inventory.pod_hourly as h
    where h.hour > as_of - interval '24 hours' and h.hour <= as_of
    window pod_hours as (partition by h.kubernetes, h.namespace, h.pod order by h.hour)
  ),

  counted as (
    select
      kubernetes,
      namespace,
      pod,
      sum(gained) as restarts,
      count(distinct last_finished_at) filter (
        where last_reason = 'OOMKilled' and last_finished_at > as_of - interval '23 hours'
      ) as oom_kills
    from day
    group by kubernetes, namespace, pod
  )

  select
    d.cluster, d.endpoint, d.namespace, d.pod, d.broker_id, d.container, 
    case when d.workload_kind in ('Deployment', 'StatefulSet', 'DaemonSet')
      then lower(d.workload_kind) || '/' || d.workload end,
    case when d.node_pool is not null then d.cluster end, d.node_pool, d.owner, d.memory_limit_bytes,
    d.gained::bigint, c.restarts::bigint, d.state_reason = 'CrashLoopBackOff', d.last_reason, d.last_exit_code,
    d.last_finished_at, c.oom_kills,
    case when d.last_reason = 'OOMKilled' and d.last_finished_at >= as_of then d.last_finished_at end
  from day as d
  inner join counted as c using (kubernetes, namespace, pod)
  where d.hour = as_of
$$;
comment on function inventory.pods is
'Pods of Kubernetes in an hour by the endpoint of their JVM: names for kubectl, owner, memory limit, restarts in the hour and in the last 24 hours, and OOM kills.';

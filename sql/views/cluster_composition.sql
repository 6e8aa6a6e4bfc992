-- Workload of each cluster by owner, from the newest 24 gathered hours: stateful and stateless applications, their latency targets and processes, topics, and consumer groups.
create or replace view public.cluster_composition as
with not_copied as materialized (
  select
    public.resource_key('topic', cluster, topic) as key,
    has_copy
  from public.topic_copies
  where has_copy is not true
),

resource as materialized (
  select * from public.resource
  where cluster is not null and kind in ('application', 'process', 'store', 'topic', 'group')
),

target as (
  select
    of_target.cluster,
    of_target.owner,
    jsonb_object_agg(of_target.seconds, of_target.applications) as applications_by_target
  from (
    select
      t.cluster,
      t.owner,
      detect.latency_target_of(t.key) as seconds,
      count(*) as applications
    from resource as t
    where t.kind = 'application'
    group by t.cluster, t.owner, detect.latency_target_of(t.key)
  ) as of_target
  where of_target.seconds is not null
  group by of_target.cluster, of_target.owner
),

seen as (
  select
    t.cluster,
    t.owner,
    t.kind,
    t.kind = 'application' and (t.cluster, t.application) in (
      select s.cluster, s.application from resource as s where s.kind = 'store' and s.application is not null
    ) as has_state,
    t.key in (select l.key from not_copied as l where not l.has_copy) as has_no_copy,
    t.key in (select l.key from not_copied as l where l.has_copy is null) as may_have_copy
  from resource as t
)

select
  seen.cluster,  -- Kafka cluster
  seen.owner,  -- Owner: tag, otherwise the config's `owners`; null: unassigned
  count(*) filter (where seen.kind = 'application') as applications,  -- Applications with known JVMs or changelogs
  count(*) filter (where seen.has_state) as stateful_applications,  -- Applications with state stores
  count(*) filter (where seen.kind = 'application' and not seen.has_state) as stateless_applications,  -- Applications without state stores
  target.applications_by_target,  -- Applications with a latency target (`latency_targets` in the config), by target in seconds; null: none
  count(*) filter (where seen.kind = 'process') as processes,  -- JVMs of applications
  count(*) filter (where seen.kind = 'store') as state_stores,  -- State stores with a changelog
  count(*) filter (where seen.kind = 'topic') as topics,  -- Topics, including internal topics of Kafka Streams
  count(*) filter (where seen.kind = 'group') as consumer_groups,  -- Consumer groups
  case when not bool_or(seen.may_have_copy) then count(*) filter (where seen.has_no_copy) end as topics_without_copy  -- Plain topics that no other watched cluster mirrors and no group backs up, as in topic_copies; null: only one cluster is watched
from seen
left join target on seen.cluster = target.cluster and seen.owner is not distinct from target.owner
group by seen.cluster, seen.owner, target.applications_by_target
order by seen.cluster asc, seen.owner asc nulls last;

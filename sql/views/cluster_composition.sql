-- What each cluster carries, by owner: jobs with and without state, their processes, and topics and groups. Of all that was seen in the newest 24 gathered hours.
create or replace view public.cluster_composition as
with lacking as materialized (
  select
    public.thing_key('topic', cluster, topic) as key,
    has_copy
  from public.topic_copies
  where has_copy is not true
),

thing as materialized (
  select * from public.thing
  where cluster is not null and kind in ('application', 'process', 'store', 'topic', 'group')
),

seen as (
  select
    t.cluster,
    t.owner,
    t.kind,
    t.kind = 'application' and (t.cluster, t.application) in (
      select s.cluster, s.application from thing as s where s.kind = 'store' and s.application is not null
    ) as has_state,
    t.key in (select l.key from lacking as l where not l.has_copy) as has_no_copy,
    t.key in (select l.key from lacking as l where l.has_copy is null) as may_have_copy
  from thing as t
)

select
  cluster,  -- Kafka cluster
  owner,  -- Whose they are: tag, else the config's `owners`; null: nobody is named
  count(*) filter (where kind = 'application') as applications,  -- Applications whose JVMs or changelogs are known
  count(*) filter (where has_state) as stateful_applications,  -- Of these, such with state stores
  count(*) filter (where kind = 'application' and not has_state) as stateless_applications,  -- Of these, such without
  count(*) filter (where kind = 'process') as processes,  -- JVMs of applications
  count(*) filter (where kind = 'store') as state_stores,  -- State stores that have a changelog
  count(*) filter (where kind = 'topic') as topics,  -- Topics, with those that Streams made
  count(*) filter (where kind = 'group') as consumer_groups,  -- Consumer groups
  case when not bool_or(may_have_copy) then count(*) filter (where has_no_copy) end as topics_without_copy  -- Plain topics that no other watched cluster mirrors and no group backs up, as topic_copies tells; null: only one cluster is watched
from seen
group by cluster, owner
order by cluster asc, owner asc nulls last;

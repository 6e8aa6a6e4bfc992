-- What each cluster carries, by owner: jobs with and without state, their processes, and topics and groups. Of all that was seen in the newest 24 gathered hours.
create or replace view public.cluster_composition as
with seen as (
  select
    t.cluster,
    t.owner,
    t.kind,
    t.kind = 'application' and exists (
      select from public.thing as s
      where s.kind = 'store' and s.cluster = t.cluster and s.application = t.application
    ) as has_state
  from public.thing as t
  where t.cluster is not null and t.kind in ('application', 'process', 'store', 'topic', 'group')
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
  count(*) filter (where kind = 'group') as consumer_groups  -- Consumer groups
from seen
group by cluster, owner
order by cluster asc, owner asc nulls last;

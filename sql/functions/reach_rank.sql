-- How much depends on a resource by its kind, 1 the most: a cluster, a broker, and at the end one client.
create or replace function public.reach_rank(resource text) returns integer
language sql immutable parallel safe as $$
  select coalesce(
    array_position(
      array['cluster', 'broker', 'instances', 'instance', 'host', 'volume', 'topic', 'store', 'application', 'process',
        'connector', 'group', 'reading', 'client'],
      split_part(resource, ':', 1)
    ),
    100
  )
$$;

-- Fetches of the consumer group members of a cluster, from the metrics of their clients; of those with one client ID, of the
-- one that fetches most.
create or replace function public.member_fetches(as_of timestamptz, of_cluster text) returns table (
  client_id text,
  is_reported boolean,                         -- as many clients with this ID reported fetches as are members
  fetches_per_second double precision, endpoint text
) language sql stable rows 100 as $$
  select
    m.client_id,
    count(distinct c.endpoint) >= count(distinct m.member_id),
    max(f.per_second),
    (array_agg(c.endpoint order by f.per_second desc nulls last))[1]
  from inventory.consumer_member_hourly as m
  left join metrics.client_hourly as c
    on c.hour = as_of and m.cluster = c.cluster and m.client_id = c.client_id
    and c.kind = 'consumer' and c.fetches / nullif(c.covered_seconds, 0) is not null
  cross join lateral (select c.fetches / nullif(c.covered_seconds, 0) as per_second) as f
  where m.hour = as_of and m.cluster = of_cluster
  group by m.client_id
$$;
comment on function public.member_fetches is
'Fetches of the consumer group members of a cluster by client ID, from the metrics of their clients.';

-- The client that fetches what no group accounts for, and the clients with the largest fetch rates: those without commits and
-- above their baseline first. A suspect belongs to no group that commits.
create or replace function public.rogue_clients(
  of_cluster text, of_hour timestamptz, least_bytes_per_second double precision
) returns table (
  top_client text,
  suspects bigint,                             -- clients that may be the one
  clients json                                 -- up to 10: client_id, user, rates, and groups that commit
) language sql stable rows 1 as $$
  select
    -- A sole suspect is named even if it has stopped since.
    (array_agg(t.client_id) filter (
      where t.is_suspect
      and (t.suspects = 1 or t.is_large)
    ))[1] as top_client,
    max(t.suspects) as suspects,
    json_agg(
      json_build_object(
        'client_id', t.client_id, 'user', t.user_name, 'fetched_bytes_per_second', t.bytes_per_second,
        'baseline_bytes_per_second', t.baseline_bytes_per_second, 'groups_that_commit', t.group_ids
      )
    ) as clients
  from (
    -- Clients without commits and above their baseline first.
    select
      c.*,
      l.is_large,
      p.is_suspect,
      count(*) filter (where p.is_suspect) over () as suspects
    from public.client_fetches(of_cluster, of_hour) as c
    cross join lateral (
      select
        c.bytes_per_second - coalesce(c.baseline_bytes_per_second, 0)
        >= least_bytes_per_second as is_large
    ) as l
    cross join lateral (
      select c.group_ids is null and (l.is_large or coalesce(c.baseline_bytes_per_second, 0) = 0) as is_suspect
    ) as p
    order by p.is_suspect desc, c.group_ids is not null asc, c.bytes_per_second desc, c.client_id asc
    limit 10
  ) as t
$$;
comment on function public.rogue_clients is
'The client that fetches what no group accounts for, and the clients with the largest fetch rates.';

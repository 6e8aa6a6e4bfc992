-- How much each client of a cluster fetches just now, where quotas make the brokers count by client.
create or replace function public.client_fetches(of_cluster text, as_of timestamptz) returns table (
  client_id text, user_name text, bytes_per_second double precision, group_ids jsonb
) language sql stable as $$
  select f.client_id, f.user_name, f.bytes_per_second, m.group_ids
  from (
    select
      labels::jsonb ->> 'client' as client_id,
      nullif(labels::jsonb ->> 'user', '') as user_name,
      sum(value) as bytes_per_second
    from metrics.broker_sample
    where hour = as_of and cluster = of_cluster and metric = 'client_fetch_bytes_per_second' and value > 0
    group by labels
  ) as f
  left join (
    select h.client_id, jsonb_agg(distinct h.group_id) as group_ids
    from inventory.consumer_member_hourly as h
    where h.hour = as_of and h.cluster = of_cluster
    and exists (
      select 1 from metrics.consumer_partition_hourly as p
      where p.hour = as_of and p.cluster = of_cluster and p.group_id = h.group_id
    )
    group by h.client_id
  ) as m using (client_id)
$$;
comment on function public.client_fetches is
'How much each client of a cluster fetches from all brokers when JMX is asked, where quotas make them count by client, and the groups that commit of which it is a member; null: none.';

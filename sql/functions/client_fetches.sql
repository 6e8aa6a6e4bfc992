-- How much each client of a cluster fetched, at the most that was read in the hour, where quotas make the brokers count by
-- client. Brokers forget a client an hour after its last request: one that has stopped is there with a lower figure, or 0.
create or replace function public.client_fetches(of_cluster text, as_of timestamptz) returns table (
  client_id text, user_name text, bytes_per_second double precision, group_ids jsonb
) language sql stable as $$
  select f.client_id, f.user_name, f.bytes_per_second, m.group_ids
  from (
    select
      labels::jsonb ->> 'client' as client_id,
      nullif(labels::jsonb ->> 'user', '') as user_name,
      sum(value) as bytes_per_second
    from (
      -- The run of the hour before reads within this one.
      select labels, max(value) as value
      from metrics.broker_sample
      where hour >= as_of - interval '1 hour' and hour <= as_of and at >= as_of
      and cluster = of_cluster and metric = 'client_fetch_bytes_per_second'
      group by endpoint, labels
    ) as b
    group by labels
    having sum(value) is not null
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
'How much each client of a cluster fetched from all brokers at the most that JMX said in the hour, where quotas make them count by client (0: it has stopped), and the groups that commit of which it is a member; null: none.';

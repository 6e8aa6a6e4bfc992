-- Fetch rate of each client of a cluster, maximum of the hour's samples. Brokers expose it per client only where quotas are
-- set, and drop a client an hour after its last request: one that has stopped has a lower value, or 0.
create or replace function public.client_fetches(of_cluster text, as_of timestamptz) returns table (
  client_id text, user_name text, bytes_per_second double precision, baseline_bytes_per_second double precision,
  group_ids jsonb
) language sql stable as $$
  with fetched as materialized (
    select b.hour, b.labels, sum(b.value) as bytes_per_second
    from (
      -- The previous hour's run takes samples within this hour.
      select
        case
          when at >= as_of and hour >= as_of - interval '1 hour' then as_of else least(hour, as_of - interval '1 hour')
        end as hour,
        labels,
        max(value) as value
      from metrics.broker_sample
      where hour >= as_of - interval '1 day' and hour <= as_of
      and cluster = of_cluster and metric = 'client_fetch_bytes_per_second'
      group by 1, endpoint, labels
    ) as b
    group by b.hour, b.labels
    having sum(value) is not null
  )

  select
    f.labels::jsonb ->> 'client',
    nullif(f.labels::jsonb ->> 'user', ''),
    f.bytes_per_second,
    u.bytes_per_second,
    m.group_ids
  from fetched as f
  left join lateral (
    -- In an hour in which brokers expose other clients only, it fetched nothing.
    select
      case when count(*) >= 12 then
        percentile_cont(0.5) within group (order by coalesce(was.bytes_per_second, 0))
      end as bytes_per_second
    from (select distinct e.hour from fetched as e where e.hour < as_of) as h
    left join fetched as was on h.hour = was.hour and f.labels = was.labels
  ) as u on true
  left join (
    select h.client_id, jsonb_agg(distinct h.group_id) as group_ids
    from inventory.consumer_member_hourly as h
    where h.hour = as_of and h.cluster = of_cluster
    and exists (
      select 1 from metrics.consumer_partition_hourly as p
      where p.hour = as_of and p.cluster = of_cluster and p.group_id = h.group_id
    )
    group by h.client_id
  ) as m on f.labels::jsonb ->> 'client' = m.client_id
  where f.hour = as_of
$$;
comment on function public.client_fetches is
'Fetch rate of each client of a cluster from all brokers, maximum of the hour''s samples, where quotas make brokers expose it (0: it has stopped); the median of the day before (null: less than half of it is known); and the committing groups in which it is a member (null: none).';

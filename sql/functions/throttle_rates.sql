-- The replication throttles of brokers, one row for each setting of each broker.
create or replace function public.throttle_rates(as_of timestamptz) returns table (
  cluster text, broker_id integer, setting text, bytes_per_second double precision,
  is_cluster_default boolean                   -- set for all brokers, not for this one
) language sql stable rows 100 as $$
  select
    b.cluster,
    b.broker_id,
    r.setting,
    cast(r.configured ->> 'value' as double precision),
    r.configured ->> 'source' = 'dynamic_default_broker_config'
  from inventory.broker_hourly as b
  cross join lateral jsonb_each(b.throttles) as r (setting, configured)
  where b.hour = as_of
$$;
comment on function public.throttle_rates is
'Replication throttles of brokers in an hour: leader, follower, and log directory rates.';

-- List price of the monitoring level PER_BROKER of a cluster of Amazon MSK: each of its metrics counts as a custom metric of
-- CloudWatch ($0.30 a month for each of the first 10,000 of an account and region, us-east-1). Metrics for each Standard
-- broker: Amazon MSK Developer Guide, "Amazon MSK metrics for monitoring Standard brokers with CloudWatch", PER_BROKER: 46,
-- 9 more with tiered storage, and CpuCreditUsage of T3. AWS sends, and bills, some only once they are used: an upper bound.
create or replace function inventory.msk_monitoring_price(
  kind text, instance_type text, storage_mode text, brokers integer
) returns double precision language sql immutable as $$
  select 0.30 * brokers * (
    46 + case when storage_mode = 'TIERED' then 9 else 0 end + case when instance_type like 'kafka.t%' then 1 else 0 end
  )
  where kind = 'standard'
$$;
comment on function inventory.msk_monitoring_price is
'List price of the monitoring level PER_BROKER of a cluster of Amazon MSK in USD per month, at most; null: not of Standard brokers.';

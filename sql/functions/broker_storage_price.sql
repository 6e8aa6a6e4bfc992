-- Price of a GiB on the brokers' volumes of each cluster, USD a month by list prices: mean of the volumes, weighted by size.
create or replace function inventory.broker_storage_price(as_of timestamptz) returns table (
  cluster text, usd_per_gib double precision
) language sql stable rows 10 as $$
  select b.cluster, sum(v.size_gib * price.usd) / sum(v.size_gib)
  from (
    select distinct cluster, account, region, volume_id from inventory.used_volumes(as_of) where is_broker
  ) as b
  inner join inventory.volume_hourly as v
    on v.hour = as_of and b.account = v.account and b.region = v.region and b.volume_id = v.volume_id
  cross join lateral (select inventory.ebs_usd_per_month(v.region, v.volume_type, 1, 0, 0) as usd) as price
  where price.usd is not null
  group by b.cluster
$$;
comment on function inventory.broker_storage_price is
'Price of a GiB on the brokers'' volumes of each cluster, USD a month by list prices; no row without a known volume or price.';

-- How volumes changed: one row per volume and stretch of time in which type, size, limits and attachment were the same.
create or replace view public.volume_history as
select
  account,  -- AWS account id
  region,  -- AWS region
  volume_id,  -- EBS volume id
  volume_type,  -- gp2, gp3, io1, io2, st1, sc1
  size_gib,  -- Size in GiB
  provisioned_iops,  -- IOPS as provisioned
  provisioned_throughput_mib_s,  -- Throughput as provisioned, MiB/s
  instance_id,  -- Instance it is attached to; null when detached
  min(hour) as valid_from,  -- First hour it was seen so (UTC)
  case when max(hour) < max(newest) then max(hour) + interval '1 hour' end as valid_to,  -- End (UTC); null: still so
  count(*) as hours_seen  -- Hours it was seen so
from (
  select
    *,
    max(hour) over (partition by account, region) as newest,
    row_number() over (partition by account, region, volume_id order by hour)
    - row_number() over (
      partition by
        account, region, volume_id, volume_type, size_gib, provisioned_iops, provisioned_throughput_mib_s, instance_id
      order by hour
    ) as stretch
  from inventory.volume_hourly
) as seen
group by
  account, region, volume_id, volume_type, size_gib, provisioned_iops, provisioned_throughput_mib_s, instance_id, stretch
order by volume_id, valid_from;

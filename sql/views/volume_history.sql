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
  valid_from,  -- First hour it was seen so (UTC)
  case when last_hour < newest then last_hour + interval '1 hour' end as valid_to,  -- End (UTC); null: still so
  hours_seen  -- Hours it was seen so
from (
  select
    *,
    max(last_hour) over (partition by account, region) as newest
  from inventory.volume_stretch
) as seen
order by volume_id, valid_from;

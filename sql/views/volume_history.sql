-- History of volumes: one row per volume and period in which type, size, limits, and attachment did not change.
create or replace view public.volume_history as
select
  account,  -- AWS account id
  region,  -- AWS region
  volume_id,  -- EBS volume id
  volume_type,  -- gp2, gp3, io1, io2, st1, sc1
  size_gib,  -- Size in GiB
  provisioned_iops,  -- Provisioned IOPS
  provisioned_throughput_mib_s,  -- Provisioned throughput, in MiB/s
  instance_id,  -- Instance that it is attached to; null: detached
  valid_from,  -- First hour with this configuration (UTC)
  case when last_hour < newest then last_hour + interval '1 hour' end as valid_to,  -- End (UTC); null: still current
  hours_seen  -- Hours with this configuration that were observed
from (
  select
    *,
    max(last_hour) over (partition by account, region) as newest
  from inventory.volume_configuration
) as seen
order by volume_id, valid_from;

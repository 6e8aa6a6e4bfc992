/*
title: Which volumes cost most
subject: cost
description: >
  EBS volumes by monthly list price, with the share of the provisioned IOPS that was used in the newest hour.
params:
  application: {type: text, description: Tag application of the volume, default: null, example: kafka}
columns:
  volume_id: EBS volume id
  name: Tag Name
  application: Tag application
  owner: Tag owner
  instance_id: Instance; null if the volume is detached
  volume_type: Volume type
  size_gib: Size in GiB
  provisioned_iops: Provisioned IOPS
  usd_per_month: List price; null if not known
  iops_p99: 99th percentile of IOPS in the newest hour; null if not reported
  used_iops_ratio: The same as a share of the baseline IOPS
*/
with -- The newest gathered hour.
newest as (
  select max(hour) as hour from detect.load
)

select
  v.volume_id,
  v.name,
  v.application,
  v.owner,
  v.instance_id,
  v.volume_type,
  v.size_gib,
  v.provisioned_iops,
  inventory.ebs_usd_per_month(
    v.region, v.volume_type, v.size_gib, v.provisioned_iops, v.provisioned_throughput_mib_s
  ) as usd_per_month,
  m.iops_p99,
  m.iops_p99 / nullif(m.baseline_iops, 0) as used_iops_ratio
from newest as n
inner join inventory.volume_hourly as v on n.hour = v.hour
left join metrics.volume_hourly as m
  on v.hour = m.hour and v.account = m.account and v.region = m.region and v.volume_id = m.volume_id
where :application is null or v.application = :application
order by usd_per_month desc nulls last, v.volume_id asc

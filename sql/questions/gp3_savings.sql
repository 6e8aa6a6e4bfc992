/*
title: How much gp3 would save
subject: cost
description: >
  List price of each gp2 volume, and of a gp3 volume of the same size with at least the same sustained IOPS
  and throughput.
columns:
  volume_id: EBS volume id
  name: Tag Name
  application: Tag application
  region: AWS region
  size_gib: Size in GiB
  gp2_baseline_iops: Sustained IOPS of the gp2 volume
  gp3_iops: IOPS of the gp3 volume, at least 3,000
  gp3_throughput_mib_s: Throughput of the gp3 volume in MiB/s, at least 128
  gp2_usd_per_month: List price today; null if not known
  gp3_usd_per_month: List price as gp3
  saved_usd_per_month: Difference
*/
-- gp2 sustains 3 IOPS of up to 256 KiB per GiB, at most 16,000 IOPS and 250 MiB/s. gp3 includes 3,000 IOPS and 125 MiB/s.
with volume as (
  select
    v.*,
    least(16000, greatest(100, 3 * v.size_gib)) as gp2_baseline_iops,
    greatest(3000, least(16000, 3 * v.size_gib)) as gp3_iops,
    ceil(least(250, greatest(128, 0.75 * v.size_gib))) as gp3_throughput_mib_s
  from inventory.volume_hourly as v
  where v.hour = (select max(hour) from inventory.volume_hourly) and v.volume_type = 'gp2'
),

-- Both prices.
priced as (
  select
    v.*,
    inventory.ebs_usd_per_month(v.region, 'gp2', v.size_gib, null, null) as gp2_usd,
    inventory.ebs_usd_per_month(v.region, 'gp3', v.size_gib, v.gp3_iops, v.gp3_throughput_mib_s) as gp3_usd
  from volume as v
)

select
  volume_id,
  name,
  application,
  region,
  size_gib,
  gp2_baseline_iops,
  gp3_iops,
  gp3_throughput_mib_s,
  gp2_usd as gp2_usd_per_month,
  gp3_usd as gp3_usd_per_month,
  gp2_usd - gp3_usd as saved_usd_per_month
from priced
order by saved_usd_per_month desc nulls last, volume_id asc

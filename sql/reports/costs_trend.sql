-- EBS costs by owner and application at the end of a period and at its start, USD a month by list prices. `owner`: only one.
with ends as (
  select
    (select max(hour) from inventory.volume_hourly where hour < cast(:finish as timestamptz)) as last_hour,
    (select max(hour) from inventory.volume_hourly where hour < cast(:start as timestamptz)) as hour_before
),

volume as (
  select
    v.hour = e.last_hour as is_last,
    coalesce(v.owner, r.owner) as owner,
    coalesce(v.application, i.application, r.application, r.cluster) as application,
    inventory.ebs_usd_per_month(
      v.region, v.volume_type, v.size_gib, v.provisioned_iops, v.provisioned_throughput_mib_s
    ) as usd
  from ends as e
  inner join inventory.volume_hourly as v on v.hour in (e.last_hour, e.hour_before)
  left join inventory.instance_hourly as i using (hour, account, region, instance_id)
  left join public.resource as r on public.resource_key('volume', v.account, v.region, v.volume_id) = r.key
)

select
  owner,
  application,
  count(*) filter (where is_last) as volumes,
  count(*) filter (where is_last and usd is null) as without_price,
  sum(usd) filter (where is_last) as usd_per_month,
  sum(usd) filter (where not is_last) as usd_per_month_before,
  sum(sum(usd) filter (where is_last)) over () as total_usd,
  sum(sum(usd) filter (where not is_last)) over () as total_usd_before,
  count(*) over () as lines
from volume
where cast(:owner as text) is null or coalesce(owner, '') = cast(:owner as text)
group by owner, application
order by usd_per_month desc nulls last, owner asc nulls last, application asc nulls last
limit cast(:most as integer)

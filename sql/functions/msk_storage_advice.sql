-- What to change the storage of MSK brokers to whose own limits hold them back: a size (gp2 has 3 IOPS for each GiB), and
-- a provisioned throughput where the broker size takes one. Demand that a limit hides is at least step_ratio times the
-- limit. MSK grows storage by at least a tenth, and up to 16,384 GiB; throughput begins at 250 MiB/s.
create or replace function metrics.msk_storage_advice(
  of_hour timestamptz, of_account text, of_region text, of_volume_id text,
  by_throughput boolean, headroom_ratio double precision, step_ratio double precision
) returns table (
  size_gib double precision, baseline_iops double precision, throughput_mib_s double precision
) language sql stable as $$
  select size.gib, 3 * size.gib, nullif(throughput.mib_s, k.provisioned_mib_s)
  from inventory.msk_brokers(of_hour) as k
  inner join inventory.volume_hourly as v
    on v.hour = of_hour and k.account = v.account and k.region = v.region and k.volume_id = v.volume_id
  inner join metrics.volume_hourly as m
    on m.hour = of_hour and k.account = m.account and k.region = m.region and k.volume_id = m.volume_id
  cross join lateral (
    select
      case
        when not by_throughput and k.provisioned_mib_s is null and v.size_gib < 16384
          then least(16384, ceil(greatest(
            1.1 * v.size_gib,
            headroom_ratio * m.demand_iops_p99 / 3,
            case
              when (m.demand_iops_p99 <= 1.1 * m.baseline_iops) is not false then step_ratio * v.size_gib
            end
          )))
      end as gib
  ) as size
  cross join lateral (
    select
      case
        when k.most_mib_s is not null and (by_throughput or k.provisioned_mib_s is not null)
          then least(
            floor(k.most_mib_s), greatest(250, ceil(step_ratio * m.baseline_bytes_per_second / 1048576))
          )
      end as mib_s
  ) as throughput
  where k.account = of_account and k.region = of_region and k.volume_id = of_volume_id
$$;
comment on function metrics.msk_storage_advice is
'What to change the storage of MSK brokers to whose own limits hold them back: size and its baseline, or a provisioned throughput; null: no change of that kind helps, or none is possible.';

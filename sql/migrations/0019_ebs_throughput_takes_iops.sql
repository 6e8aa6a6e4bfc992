-- An operation carries 256 KiB at most, so throughput takes IOPS: 4 for a MiB/s on gp2, gp3 and io1, of which io1
-- takes 64 for a MiB/s beyond 500 MiB/s (16 KiB each); io2 gives 0.256 MiB/s for each. Before, a volume was named that has
-- the wanted IOPS and not the wanted throughput.
create or replace function inventory.ebs_volume_with(
  of_type text, wanted_iops double precision, wanted_mib_s double precision, at_least_gib double precision
) returns table (
  size_gib double precision, iops double precision, mib_s double precision, suffices boolean
) language sql immutable as $$
  select
    greatest(
      at_least_gib,
      case of_type
        when 'gp3' then ceil(nullif(given.iops, 3000) / 500)
        when 'io1' then ceil(given.iops / 50)
        when 'io2' then ceil(given.iops / 1000)
        when 'gp2' then greatest(ceil(needed.iops / 3), case when wanted_mib_s > 128 then 334 end)
        when 'st1' then ceil(1024 * wanted_mib_s / 40)
        when 'sc1' then ceil(1024 * wanted_mib_s / 12)
      end
    ),
    given.iops,
    case of_type when 'gp3' then least(most.mib_s, greatest(125, wanted_mib_s)) end,
    (most.iops is null or wanted_iops <= most.iops) and wanted_mib_s <= most.mib_s
  from (values
    ('gp2', 16000, 250), ('gp3', 80000, 2000), ('io1', 64000, 1000), ('io2', 256000, 4000), ('st1', null, 500),
    ('sc1', null, 192)
  ) as most (volume_type, iops, mib_s)
  cross join lateral (select least(most.mib_s, wanted_mib_s) as mib_s) as can
  cross join lateral (
    select
      greatest(
        wanted_iops,
        case
          when of_type = 'io2' then ceil(can.mib_s / 0.256)
          when of_type = 'io1' and can.mib_s > 500 then ceil(64 * can.mib_s)
          else ceil(4 * can.mib_s)
        end
      ) as iops
  ) as needed
  cross join lateral (
    select
      case
        when of_type = 'gp3' then least(most.iops, greatest(3000, needed.iops))
        when of_type in ('io1', 'io2') then least(most.iops, needed.iops)
      end as iops
  ) as given
  where most.volume_type = of_type
$$;

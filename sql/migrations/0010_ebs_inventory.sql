-- What EC2 leaves out of an answer is null; it doesn't cost a volume or an instance its row.
alter table inventory.volume_hourly
alter column volume_type drop not null,
alter column size_gib drop not null,
alter column state drop not null;
alter table inventory.instance_hourly
alter column instance_type drop not null,
alter column state drop not null;

-- gp3 gives 0.25 MiB/s for each IOPS; beyond the 3,000 that are included, IOPS take a GiB for 500 (io1 50, io2 1,000).
-- gp2 gives 3 IOPS for a GiB and more than 128 MiB/s, without credits, from 334 GiB on; st1 40 and sc1 12 MiB/s for a TiB.
create function inventory.ebs_volume_with(
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
        when 'gp2' then greatest(ceil(wanted_iops / 3), case when wanted_mib_s > 128 then 334 end)
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
  cross join lateral (
    select
      case
        when of_type = 'gp3' then least(most.iops, greatest(3000, wanted_iops, 4 * least(most.mib_s, wanted_mib_s)))
        when of_type in ('io1', 'io2') then least(most.iops, wanted_iops)
      end as iops
  ) as given
  where most.volume_type = of_type
$$;
comment on function inventory.ebs_volume_with is
'The least volume of a type, at least as large as it is, that sustains these rates; or all it gives: suffices tells.';

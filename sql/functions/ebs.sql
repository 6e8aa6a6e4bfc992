-- List price of an EBS volume, USD a month; null where the price of the region or the type is not known.
create or replace function inventory.ebs_usd_per_month(
  of_region text, of_type text, size_gib double precision, iops double precision, throughput_mib_s double precision
) returns double precision language sql stable as $$
  select
    case of_type
      when 'gp2' then size_gib * p.gp2_gib
      when 'gp3'
        then
          size_gib * p.gp3_gib + greatest(0, iops - 3000) * p.gp3_iops + greatest(0, throughput_mib_s - 125) * p.gp3_mib_s
      when 'io1' then size_gib * p.io1_gib + iops * p.io1_iops
      when 'io2'
        then
          size_gib * p.io2_gib + iops * p.io2_iops
          + greatest(0, iops - 32000) * (p.io2_iops_above_32000 - p.io2_iops)
          + greatest(0, iops - 64000) * (p.io2_iops_above_64000 - p.io2_iops_above_32000)
      when 'st1' then size_gib * p.st1_gib
      when 'sc1' then size_gib * p.sc1_gib
    end
  from inventory.ebs_price as p
  where p.region = of_region
$$;

-- The smallest volume of a type, at least as large as the current one, that sustains these rates; where none does, the
-- largest of that type, with suffices = false. An I/O operation is 256 KiB at most: 1 MiB/s needs 4 IOPS on gp2, gp3, and
-- io1 (16 KiB on io1 above 500 MiB/s: 64 IOPS); on io2, 0.256 MiB/s needs 1 IOPS. IOPS above the included 3,000 need 1 GiB
-- per 500 (io1: per 50, io2: per 1,000). gp2 sustains 3 IOPS per GiB, and from 334 GiB on more than 128 MiB/s without
-- credits; st1 sustains 40 MiB/s per TiB and sc1 12.
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

-- Burst credits that a load uses per second, or that a baseline earns: bytes for st1 and sc1, otherwise I/O of up to 256 KiB.
create or replace function inventory.ebs_credits_per_second(
  of_type text, iops double precision, bytes_per_second double precision
) returns double precision language sql immutable as $$
  select case when of_type in ('st1', 'sc1') then bytes_per_second else greatest(iops, bytes_per_second / 262144) end
$$;

-- Whether a volume's demand in an hour is known only as a lower bound: a limit throttled it, and no load above that limit is
-- known. A volume with a burst bucket is capped at its baseline once the bucket is empty, otherwise at its burst. The mean of
-- a minute far below the limit is no demand either: what the limit cut off within the minute (micro-bursts) is not in it. Load
-- above the baseline while credits lasted, or above a limit that was lowered later, is exact; load within 5 % of the burst is
-- the burst itself.
create or replace function metrics.demand_is_open(h metrics.volume_hourly) returns boolean language sql immutable as $$
  select
    greatest(h.minutes_at_iops_limit, h.minutes_at_throughput_limit) > 0
    and (
      h.demand_iops_p99 is null
      or coalesce(
        (not is_empty.now or load.pieces >= 0.95 * h.burst_iops)
        and (h.minutes_at_iops_limit > 0 or load.pieces >= 0.95 * h.burst_iops)
        and load.pieces <= 1.05 * h.burst_iops,
        false
      )
      or coalesce(
        (not is_empty.now or h.demand_bytes_per_second_p99 >= 0.95 * h.burst_bytes_per_second)
        and (h.minutes_at_throughput_limit > 0 or h.demand_bytes_per_second_p99 >= 0.95 * h.burst_bytes_per_second)
        and h.demand_bytes_per_second_p99 <= 1.05 * h.burst_bytes_per_second,
        false
      )
      or coalesce(
        is_empty.now
        and h.demand_iops_p99 <= 1.05 * h.baseline_iops
        and h.demand_bytes_per_second_p99 <= 1.05 * h.baseline_bytes_per_second,
        false
      )
    )
  from (select coalesce(h.hours_to_exhaustion = 0, false) or coalesce(h.minutes_empty > 0, false) as now) as is_empty
  cross join (
    select
      case
        when coalesce(h.bucket_credits, 0) > 5400000 then h.demand_iops_p99  -- HDD volumes: their I/O size is 1 MiB
        else greatest(h.demand_iops_p99, h.demand_bytes_per_second_p99 / 262144)
      end as pieces
  ) as load
$$;

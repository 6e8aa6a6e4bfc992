-- List prices of EBS volumes by region, USD a month; read from the table of prices (config `ebs_prices`) by `migrate`.
create table inventory.ebs_price (
  region text primary key,  -- AWS region
  as_of date not null,  -- Day for which the prices are known
  source text not null,  -- Where they come from
  gp2_gib double precision,  -- gp2, per GiB; null: not known, as below
  gp3_gib double precision,  -- gp3, per GiB
  gp3_iops double precision,  -- gp3, per IOPS over 3,000
  gp3_mib_s double precision,  -- gp3, per MiB/s over 125
  io1_gib double precision,  -- io1, per GiB
  io1_iops double precision,  -- io1, per IOPS
  io2_gib double precision,  -- io2, per GiB
  io2_iops double precision,  -- io2, per IOPS up to 32,000
  io2_iops_above_32000 double precision,  -- io2, per IOPS from there to 64,000
  io2_iops_above_64000 double precision,  -- io2, per IOPS beyond
  st1_gib double precision,  -- st1, per GiB
  sc1_gib double precision  -- sc1, per GiB
);

create function inventory.ebs_usd_per_month(
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
comment on function inventory.ebs_usd_per_month is
'List price of an EBS volume, USD a month; null where the region''s or the type''s price isn''t known.';

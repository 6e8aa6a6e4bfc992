-- Periods in which a volume's configuration did not change, from its hours since one.
create or replace function inventory.volume_configurations_since(
  of_account text, of_region text, of_volume_id text, since_hour timestamptz
) returns setof inventory.volume_configuration language sql stable rows 2 as $$
  select
    account, region, volume_id, min(hour), max(hour), count(*),
    volume_type, size_gib, provisioned_iops, provisioned_throughput_mib_s, instance_id
  from (
    select
      *,
      row_number() over (order by hour)
      - row_number() over (
        partition by volume_type, size_gib, provisioned_iops, provisioned_throughput_mib_s, instance_id order by hour
      ) as period
    from inventory.volume_hourly
    where account = of_account and region = of_region and volume_id = of_volume_id and hour >= since_hour
  ) as seen
  group by
    account, region, volume_id, volume_type, size_gib, provisioned_iops, provisioned_throughput_mib_s, instance_id, period
$$;

-- Keeps inventory.volume_configuration in line with the hours that were just loaded. Most are the newest: they extend the last
-- period of a volume, or begin another. Hours in any other order cause the volume's periods to be recomputed from there on.
create or replace function inventory.update_volume_configurations() returns trigger language plpgsql as $$
declare
  only_hour timestamptz := (select min(hour) from loaded having min(hour) = max(hour));
begin
  with newest as (
    select l.*, s.valid_from, s.last_hour,
      (s.volume_type, s.size_gib, s.provisioned_iops, s.provisioned_throughput_mib_s, s.instance_id)
      is not distinct from
      (l.volume_type, l.size_gib, l.provisioned_iops, l.provisioned_throughput_mib_s, l.instance_id) as is_same
    from loaded as l
    left join lateral (
      select * from inventory.volume_configuration as v
      where v.account = l.account and v.region = l.region and v.volume_id = l.volume_id
      order by v.valid_from desc limit 1
    ) as s on true
  ),

  continued as (
    update inventory.volume_configuration as s set last_hour = n.hour, hours_seen = s.hours_seen + 1
    from newest as n
    where n.hour = only_hour and n.is_same and n.last_hour < n.hour
    and s.account = n.account and s.region = n.region and s.volume_id = n.volume_id and s.valid_from = n.valid_from
  ),

  begins as (
    insert into inventory.volume_configuration
    select account, region, volume_id, hour, hour, 1,
      volume_type, size_gib, provisioned_iops, provisioned_throughput_mib_s, instance_id
    from newest
    where hour = only_hour and (last_hour is null or (last_hour < hour and not is_same))
  ),

  out_of_order as (
    select n.account, n.region, n.volume_id, min(coalesce(before.valid_from, n.hour)) as since_hour
    from newest as n
    left join lateral (
      select max(v.valid_from) as valid_from from inventory.volume_configuration as v
      where v.account = n.account and v.region = n.region and v.volume_id = n.volume_id and v.valid_from < n.hour
    ) as before on true
    left join lateral (
      select * from inventory.volume_configuration as v
      where v.account = n.account and v.region = n.region and v.volume_id = n.volume_id and v.valid_from <= n.hour
      order by v.valid_from desc limit 1
    ) as of_then on true
    where (only_hour is null or n.last_hour >= n.hour)
    and (
      of_then.last_hour >= n.hour
      and (
        of_then.volume_type, of_then.size_gib, of_then.provisioned_iops, of_then.provisioned_throughput_mib_s,
        of_then.instance_id
      ) is not distinct from
      (n.volume_type, n.size_gib, n.provisioned_iops, n.provisioned_throughput_mib_s, n.instance_id)
    ) is not true
    group by n.account, n.region, n.volume_id
  ),

  recomputed as (
    select s.* from out_of_order as o
    cross join lateral inventory.volume_configurations_since(o.account, o.region, o.volume_id, o.since_hour) as s
  ),

  gone as (
    delete from inventory.volume_configuration as s using out_of_order as o
    where s.account = o.account and s.region = o.region and s.volume_id = o.volume_id
    and s.valid_from >= o.since_hour
    and not exists (
      select from recomputed as m
      where m.account = s.account and m.region = s.region and m.volume_id = s.volume_id and m.valid_from = s.valid_from
    )
  )

  insert into inventory.volume_configuration
  select * from recomputed
  on conflict (account, region, volume_id, valid_from) do update set
    last_hour = excluded.last_hour, hours_seen = excluded.hours_seen, volume_type = excluded.volume_type,
    size_gib = excluded.size_gib, provisioned_iops = excluded.provisioned_iops,
    provisioned_throughput_mib_s = excluded.provisioned_throughput_mib_s, instance_id = excluded.instance_id;
  return null;
end
$$;
create or replace trigger update_volume_configurations
after insert on inventory.volume_hourly
referencing new table as loaded
for each statement execute function inventory.update_volume_configurations();
create or replace trigger note_changed_volumes
after update on inventory.volume_hourly
referencing new table as loaded
for each statement execute function inventory.update_volume_configurations();

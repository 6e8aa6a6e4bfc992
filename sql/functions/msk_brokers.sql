-- Brokers of Amazon MSK in an hour, with what the commands that change their cluster need.
-- Broker sizes in order, and the most storage throughput that one takes: Amazon MSK Developer Guide, "Amazon MSK broker
-- sizes" and "Manage storage throughput for Standard brokers". T3 brokers grow into M5.
create or replace function inventory.msk_brokers(as_of timestamptz) returns table (
  account text, region text, instance_id text, volume_id text, msk_cluster text, msk_broker_id integer,
  cluster_arn text, current_version text, broker_size text, larger_broker_size text, monitoring_level text,
  provisioned_mib_s integer, most_mib_s double precision, volume_gib integer, broker_count integer,
  monitoring_price double precision            -- of PER_BROKER, of the cluster, in USD per month
) language sql stable as $$
  select
    b.account, b.region, b.instance_id, b.volume_id, b.cluster, b.broker_id, c.cluster_arn, c.current_version,
    c.instance_type,
    case
      when c.instance_type like 'kafka.t%' then 'kafka.m5.large'
      else (
        select split_part(c.instance_type, '.', 1) || '.' || split_part(c.instance_type, '.', 2) || '.' || n.size
        from unnest(size.names) with ordinality as n (size, place)
        where n.place = array_position(size.names, split_part(c.instance_type, '.', 3)) + 1
      )
    end,
    c.monitoring_level, c.provisioned_mib_s,
    (
      select t.mib_s
      from (values
        ('kafka.m5.4xlarge', 593), ('kafka.m5.8xlarge', 850), ('kafka.m5.12xlarge', 1000), ('kafka.m5.16xlarge', 1000),
        ('kafka.m5.24xlarge', 1000), ('kafka.m7g.2xlarge', 312.5), ('kafka.m7g.4xlarge', 625),
        ('kafka.m7g.8xlarge', 1000), ('kafka.m7g.12xlarge', 1000), ('kafka.m7g.16xlarge', 1000)
      ) as t (broker_size, mib_s)
      where t.broker_size = c.instance_type
    ),
    c.volume_gib, c.broker_count,
    inventory.msk_monitoring_price(c.kind, c.instance_type, c.storage_mode, c.broker_count)
  from inventory.msk_broker_hourly as b
  inner join inventory.msk_cluster_hourly as c using (hour, cluster)
  cross join lateral (
    select array['large', 'xlarge', '2xlarge', '4xlarge', '8xlarge', '12xlarge', '16xlarge']
      || case when c.instance_type like 'kafka.m5.%' then array['24xlarge'] else array[]::text[] end as names
  ) as size
  where b.hour = as_of
$$;
comment on function inventory.msk_brokers is
'Brokers of Amazon MSK in an hour, with what the commands that change their cluster need: ARN, version of its settings, the next larger broker size (null: it has the largest), and the most storage throughput in MiB/s (null: the size takes none).';

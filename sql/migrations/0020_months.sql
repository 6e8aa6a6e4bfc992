-- Facts and evaluations get a partition a month, so that retention drops partitions instead of rows.
do $$
declare
  -- The tables as they were; those of later migrations are partitioned where they are created.
  names text[] := array[
    'inventory.consumer_group_hourly', 'inventory.consumer_member_hourly', 'inventory.instance_hourly',
    'inventory.schema_hourly', 'inventory.topic_hourly', 'inventory.volume_hourly',
    'metrics.broker_hourly', 'metrics.cloudwatch_cost_hourly', 'metrics.consumer_group_hourly',
    'metrics.consumer_partition_hourly', 'metrics.instance_hourly', 'metrics.jvm_app_hourly', 'metrics.log_dir_hourly',
    'metrics.node_hourly', 'metrics.partition_hourly', 'metrics.state_store_change_hourly', 'metrics.state_store_hourly',
    'metrics.state_store_memory_hourly', 'metrics.state_store_path_hourly', 'metrics.topic_hourly',
    'metrics.volume_hourly', 'detect.load', 'detect.coverage', 'detect.judgement', 'detect.evaluation'
  ];
  name text;
  old text;
  statement text;
  statements text[];
  month timestamp;
  months timestamp[];
begin
  foreach name in array names loop
    old := 'staging.' || split_part(name, '.', 2);
    select array_agg(s.said) into statements from (
      select format('comment on table %s is %L', name, obj_description(name::regclass, 'pg_class'))
      union all
      select format('alter table %s owner to %I', name, pg_get_userbyid(c.relowner))
      from pg_class as c where c.oid = name::regclass
      union all
      select
        format(
          'grant %s%s on %s to %s%s', g.privilege_type, ' (' || quote_ident(held.attname) || ')', name,
          case g.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(g.grantee)) end,
          case when g.is_grantable then ' with grant option' end
        )
      from (
        select null as attname, c.relacl as acl from pg_class as c where c.oid = name::regclass
        union all
        select a.attname, a.attacl from pg_attribute as a where a.attrelid = name::regclass
      ) as held
      cross join lateral aclexplode(held.acl) as g
    ) as s (said);
    execute format('alter table %s set schema staging', name);
    execute format('create table %s (like %s including all) partition by range (hour)', name, old);
    execute format($query$select array_agg(distinct date_trunc('month', hour at time zone 'UTC')) from %s$query$, old) into months;
    foreach month in array coalesce(months, '{}') loop
      execute format(
        'create table %s partition of %s for values from (%L) to (%L)', name || to_char(month, '_YYYYMM'), name,
        month at time zone 'UTC', (month + interval '1 month') at time zone 'UTC'
      );
    end loop;
    execute format('insert into %s select * from %s', name, old);
    execute format('drop table %s', old);
    foreach statement in array statements loop
      execute statement;
    end loop;
  end loop;
end
$$;
drop function public.drop_days_before(regclass, date);

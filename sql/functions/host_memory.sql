-- Memory of each host in an hour and the share in use: from EC2 and the CloudWatch agent, otherwise from node exporter.
create or replace function metrics.host_memory(of_hour timestamptz) returns table (
  instance_id text, memory_bytes double precision, system_memory_used_percent double precision
) language sql stable as $$
  select
    instance_id,
    coalesce(max(i.memory_bytes), max(n.memory_bytes)),
    coalesce(max(m.memory_used_mean_percent), max(n.memory_used_mean_percent))
  from (select * from inventory.instance_hourly where hour = of_hour) as i
  left join metrics.instance_hourly as m using (hour, account, region, instance_id)
  full join (
    select instance_id, memory_bytes, memory_used_mean_percent
    from metrics.node_hourly
    where hour = of_hour and instance_id is not null
  ) as n using (instance_id)
  group by instance_id
$$;
comment on function metrics.host_memory is
'Memory of each host in an hour and the share in use: from EC2 and the CloudWatch agent, otherwise from node exporter.';

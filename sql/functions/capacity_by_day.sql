-- Use of the brokers' disks, processes' memory, partitions, file descriptors, and instances' network against their limits: the maximum of each day (UTC).
create or replace function public.capacity_by_day(first_hour timestamptz, until timestamptz) returns table (
  day timestamptz, kind text, resource text, name text, used double precision, capacity double precision
) language sql stable rows 1000 as $$
  with hourly as (
    select
      hour,
      'disk' as kind,
      public.resource_key('broker', cluster, broker_id::text) as resource,
      format('%s broker %s, %s', cluster, broker_id, log_dir) as name,
      (total_bytes - usable_bytes)::double precision as used,
      total_bytes::double precision as capacity
    from metrics.log_dir_hourly
    where hour >= first_hour and hour < until
    union all
    select
      hour,
      'memory' as kind,
      public.resource_key('process', cluster, endpoint) as resource,
      format('%s at %s', app, endpoint) as name,
      coalesce(
        resident_bytes,
        heap_used_bytes + non_heap_used_bytes + coalesce(direct_bytes, 0) + coalesce(rocksdb_measured_bytes, 0)
      ) as used,
      memory_limit_bytes as capacity
    from metrics.jvm_app_hourly
    where hour >= first_hour and hour < until
    union all
    select
      b.hour,
      e.kind,
      public.resource_key('broker', b.cluster, coalesce(b.broker_id::text, b.endpoint)) as resource,
      format('%s broker %s', b.cluster, coalesce(b.broker_id::text, b.endpoint)) as name,
      e.used,
      e.capacity
    from metrics.broker_hourly as b
    left join (
      select (params ->> 'many')::double precision as many
      from detect.detector_run
      where detector = 'broker_partitions_too_many' and status = 'evaluated' and hour < until
      order by hour desc
      limit 1
    ) as limited on true
    cross join lateral (
      values
      ('partitions', b.partitions, limited.many),
      ('file descriptors', b.open_file_descriptors, b.max_file_descriptors)
    ) as e (kind, used, capacity)
    where b.hour >= first_hour and b.hour < until
    union all
    select
      hour,
      'network' as kind,
      public.resource_key('instance', account, region, instance_id) as resource,
      format('%s, %s', instance_id, direction) as name,
      bytes_per_second_p99 as used,
      baseline_bytes_per_second as capacity
    from metrics.instance_network_hourly
    where hour >= first_hour and hour < until
  )

  select date_trunc('day', hour, 'UTC'), kind, resource, name, max(used), max(capacity)
  from hourly
  where used is not null and capacity > 0
  group by 1, kind, resource, name
$$;
comment on function public.capacity_by_day is
'Use of disks, memory, partitions, file descriptors, and network against their limits, the maximum of each day (UTC). Hours without a value or a limit are left out.';

-- The values that the JVM of each broker reported last in some hours, and whether it responds in the last of them.
create or replace function public.broker_jvms(as_of timestamptz, look_back_hours integer) returns table (
  cluster text, broker_id integer, endpoint text, is_responding boolean, instance_id text,
  open_file_descriptors double precision, max_file_descriptors double precision,
  heap_used_bytes double precision, heap_max_bytes double precision
) language sql stable rows 100 as $$
  select
    cluster,
    broker_id,
    (array_agg(endpoint order by hour desc))[1],
    bool_or(samples is not null) filter (where hour = as_of),
    (array_agg(instance_id order by hour desc) filter (where instance_id is not null))[1],
    (array_agg(open_file_descriptors order by hour desc) filter (where samples is not null))[1],
    (array_agg(nullif(greatest(max_file_descriptors, 0), 0) order by hour desc) filter (where samples is not null))[1],
    (array_agg(heap_used_bytes order by hour desc) filter (where samples is not null))[1],
    (array_agg(heap_max_bytes order by hour desc) filter (where samples is not null))[1]
  from metrics.broker_hourly
  where hour > as_of - make_interval(hours => look_back_hours) and hour <= as_of and broker_id is not null
  group by cluster, broker_id
$$;
comment on function public.broker_jvms is
'The values that the JVM of each broker reported last in some hours.';

-- Whether partitions were being reassigned, hour by hour.
create or replace function public.reassignment_hours(of_clusters text[], after timestamptz, as_of timestamptz)
returns table (
  hour timestamptz, cluster text,
  is_reported boolean,                         -- the cluster listed its reassignments
  is_running boolean,                          -- at least one broker received replicas
  has_rates boolean                            -- at least one broker had a replication throttle
) language sql stable rows 1000 as $$
  select
    hour,
    cluster,
    bool_or(adding_replicas is not null),
    coalesce(bool_or(adding_replicas > 0), false),
    coalesce(bool_or(throttles <> '{}'), false)
  from inventory.broker_hourly
  where hour > after and hour <= as_of and cluster = any(of_clusters)
  group by hour, cluster
$$;
comment on function public.reassignment_hours is
'Of each hour of these clusters, whether partitions were being reassigned and brokers had a replication throttle.';

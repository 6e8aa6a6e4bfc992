-- Kafka Streams applications that are not restoring stores: no rebalance and no process start for hours.
create or replace function public.settled_applications(
  of_cluster text, as_of timestamptz, settled_hours integer
) returns table (application_id text) language sql stable as $$
  select g.group_id
  from metrics.consumer_group_hourly as g
  where g.cluster = of_cluster and g.hour > as_of - make_interval(hours => settled_hours) and g.hour <= as_of
  and not exists (
    select 1 from metrics.jvm_app_hourly as a
    where a.hour = as_of and a.cluster = of_cluster and a.application_id = g.group_id
    and a.process_started_at > as_of - make_interval(hours => settled_hours)
  )
  group by g.group_id
  having count(g.rebalances) = settled_hours and sum(g.rebalances) = 0
$$;
comment on function public.settled_applications is
'Applications of a cluster that are not restoring stores: no rebalance of their group and no start of their processes for settled_hours.';

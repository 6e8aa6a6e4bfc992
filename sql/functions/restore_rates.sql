-- How fast a process of each application has restored state in some days: the median of what was observed.
create or replace function public.restore_rates(as_of timestamptz, days integer) returns table (
  cluster text, application_id text, records_per_second double precision,
  hours bigint                                 -- with restores
) language sql stable rows 50 as $$
  select
    cluster,
    application_id,
    percentile_cont(0.5) within group (order by restored_records_per_second),
    count(distinct hour)
  from metrics.jvm_app_hourly
  where hour > as_of - make_interval(days => days) and hour <= as_of and restored_records_per_second is not null
  group by cluster, application_id
$$;
comment on function public.restore_rates is
'How fast a process of each application has restored state in some days: the median, in records per second.';

-- Processes of an hour and the host of each: its EC2 instance, or else the address of its endpoint.
create or replace function public.hosted_processes(as_of timestamptz) returns table (
  cluster text, app text, endpoint text, application_id text, host text
) language sql stable rows 100 as $$
  select
    cluster,
    app,
    endpoint,
    application_id,
    coalesce(instance_id, substring(endpoint from '://([^/:]+)'), endpoint)
  from metrics.jvm_app_hourly
  where hour = as_of
$$;
comment on function public.hosted_processes is
'Processes of an hour and the host of each: its EC2 instance, or else the address of its endpoint.';

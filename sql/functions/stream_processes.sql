-- Processes of Kafka Streams applications in an hour. One that does not respond belongs to the application that it reported
-- last within 24 hours.
create or replace function public.stream_processes(as_of timestamptz) returns table (
  cluster text, endpoint text, application_id text,
  samples integer                              -- null: no response
) language sql stable rows 100 as $$
  select
    a.cluster,
    a.endpoint,
    p.application_id,
    a.samples
  from metrics.jvm_app_hourly as a
  cross join lateral (
    select
      coalesce(
        a.application_id, case when a.samples is null then public.last_application_id(a.cluster, a.endpoint, a.hour) end
      ) as application_id
  ) as p
  where a.hour = as_of and p.application_id is not null
$$;
comment on function public.stream_processes is
'Processes of Kafka Streams applications in an hour, with the application that they reported last.';

-- The processes of Kafka Streams that restored state in an hour. The gauge counts offsets when a restore begins and falls by
-- records, so that after one of a compacted log it stands above 0 until the process ends (KAFKA-20711): what is as it was
-- an hour before is over.
create or replace function public.processes_restoring(first_hour timestamptz, last_hour timestamptz) returns table (
  hour timestamptz, cluster text, application_id text, endpoint text
) language sql stable rows 100 as $$
  select n.hour, n.cluster, n.application_id, n.endpoint
  from metrics.jvm_app_hourly as n
  left join metrics.jvm_app_hourly as b
    on n.hour = b.hour + interval '1 hour' and n.cluster = b.cluster and n.app = b.app and n.endpoint = b.endpoint
    and b.hour >= first_hour - interval '1 hour' and b.hour < last_hour
  where n.hour >= first_hour and n.hour <= last_hour and n.records_to_restore > 0
  and n.records_to_restore is distinct from b.records_to_restore
$$;
comment on function public.processes_restoring is
'The processes of Kafka Streams applications that restored state in an hour: what they had yet to read changed since the hour before.';

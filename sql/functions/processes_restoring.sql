-- Kafka Streams processes that restored state in an hour. The gauge counts offsets when a restore begins and decreases by
-- records, so after the restore of a compacted log it stays above 0 until the process ends (KAFKA-20711): a value that did
-- not change since the hour before means that the restore is finished.
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
'Kafka Streams processes that restored state in an hour: the number of records left to restore changed since the hour before.';

-- Kafka Streams application of a JVM, as last reported within 24 hours: a process that does not respond still belongs to it.
create or replace function public.last_application_id(of_cluster text, of_endpoint text, as_of timestamptz)
returns text language sql stable as $$
  select p.application_id
  from metrics.jvm_app_hourly as p
  where p.hour > as_of - interval '24 hours' and p.hour <= as_of
  and p.cluster = of_cluster and p.endpoint = of_endpoint and p.application_id is not null
  order by p.hour desc
  limit 1
$$;
comment on function public.last_application_id is
'Kafka Streams application of a JVM, as last reported within 24 hours; null: not reported, or not a Kafka Streams application.';

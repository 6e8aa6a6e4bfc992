-- Client software of each cluster in the newest gathered hour and the known issues of its version, from broker connection metrics and the Kafka Streams versions of applications.
create or replace view public.client_versions as
with newest as (
  select greatest((select max(b.hour) from metrics.broker_hourly as b), (select max(a.hour) from metrics.jvm_app_hourly as a)) as hour
),

client as (
  select
    s.hour,
    s.cluster,
    s.labels::jsonb ->> 'client' as client,
    s.labels::jsonb ->> 'version' as version,
    s.labels::jsonb ->> 'listener' as listener,
    sum(s.value)::integer as connections,
    null::text[] as applications
  from metrics.broker_sample as s
  where s.hour = (select hour from newest) and s.metric = 'client_connections'
  group by s.hour, s.cluster, s.labels
  having sum(s.value) > 0
  union all
  select
    s.hour,
    s.cluster,
    'kafka-streams' as client,
    s.labels::jsonb ->> 'version' as version,
    null as listener,
    null as connections,
    array_agg(distinct s.app order by s.app) as applications
  from metrics.jvm_app_sample as s
  where s.hour = (select hour from newest) and s.metric = 'streams_version'
  group by s.hour, s.cluster, s.labels
),

-- Affected versions: from the first, up to but not including the one with the fix, by the projects' changelogs and upgrade notes.
-- KAFKA-10888: producers send the most to the slowest broker. KAFKA-8323, -19748, -20616: stores leak native memory.
-- librdkafka#3020: compressed records of aborted transactions are read. #3306: cooperative groups rebalance for hours.
-- #4527: a consumer that closes during an assignment hangs.
fault (library, since, until, name) as (
  values
  ('apache-kafka-java', '{2,4}'::integer[], '{3,3}'::integer[], 'KAFKA-10888'),
  ('kafka-streams', '{0}', '{2,2,1}', 'KAFKA-8323'),
  ('kafka-streams', '{4,1}', '{4,1,1}', 'KAFKA-19748'),
  ('kafka-streams', '{4,3}', '{4,3,1}', 'KAFKA-20616'),
  ('librdkafka', '{0}', '{1,5,3}', 'librdkafka#3020'),
  ('librdkafka', '{1,6}', '{1,7}', 'librdkafka#3306'),
  ('librdkafka', '{1,6}', '{2,4}', 'librdkafka#4527')
)

select
  c.cluster,  -- Kafka cluster
  c.client,  -- Name that the client reports, kafka-streams (from applications' JVMs), or unknown: a client before Kafka 2.4
  c.version,  -- Version that the client reports
  c.listener,  -- Listener that it is connected to; on the inter-broker listener the brokers are clients
  c.connections,  -- Connections to all brokers; null: known from the application's JVM
  c.applications,  -- Applications that run it, as far as their JVMs are read; null: known from brokers' connections
  (
    select array_agg(f.name order by f.name)
    from fault as f
    where
      f.library = of.library and of.numbers >= f.since and of.numbers < f.until
  ) as known_faults,  -- Issues in the tracker of Apache Kafka or librdkafka; null: none known
  c.hour  -- Start of the hour (UTC)
from client as c
cross join lateral (
  select
    case when c.client = 'librdkafka' or c.version ~ 'rdkafka-[0-9]' then 'librdkafka' else c.client end as library,
    string_to_array(substring(coalesce(substring(c.version from 'rdkafka-(.*)'), c.version) from '[0-9]+(?:\.[0-9]+){0,3}'), '.')
      ::integer[] as numbers
) as of
order by c.cluster asc, c.client asc, of.numbers asc, c.listener asc;

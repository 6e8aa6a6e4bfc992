-- Every thing that was seen in the newest 24 gathered hours: what findings are about, whose it is.
create or replace view public.resource as
select
  t.kind,  -- volume, instance, instances, host, cluster, broker, topic, reading, group, client, application, process or store
  t.key,  -- By which it is known everywhere, e.g. broker:orders-prod/3
  t.name,  -- Short name for people
  t.cluster,  -- Kafka cluster; null of things of AWS
  t.application,  -- Application that it belongs to
  t.owner,  -- Who gets its tickets: tag, else the config's `owners`, else of what it belongs to; null: nobody is named
  t.seen_hour  -- Newest hour that it was seen in (UTC)
from public.resources((select max(l.hour) from detect.load as l)) as t;

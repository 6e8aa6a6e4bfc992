-- Resources seen in the newest 24 gathered hours, with their owners. Findings are about resources.
create or replace view public.resource as
select
  t.kind,  -- volume, instance, instances, host, cluster, broker, topic, reading, group, client, application, process or store
  t.key,  -- Key, the same everywhere, e.g. broker:orders-prod/3
  t.name,  -- Short name
  t.cluster,  -- Kafka cluster; null for AWS resources
  t.application,  -- Application that it belongs to
  t.owner,  -- Owner (assignee of tickets): tag, otherwise the config's `owners`, otherwise the owner of what it belongs to; null: unassigned
  t.seen_hour  -- Newest hour in which it was seen (UTC)
from public.resources((select max(l.hour) from detect.load as l)) as t;

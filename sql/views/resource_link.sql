-- Dependencies between resources in the newest gathered hour: a fault of the upstream resource can affect the downstream one.
create or replace view public.resource_link as
select
  l.upstream,  -- Key of the resource that can affect the other
  l.downstream,  -- Key of the resource that can be affected
  l.basis,  -- Kind of dependency: attached, runs on, leads, read by, …
  l.seen_hour  -- Hour with the dependency (UTC); older than the newest hour where a source has not responded since
from public.resource_links((select max(h.hour) from detect.load as h)) as l;

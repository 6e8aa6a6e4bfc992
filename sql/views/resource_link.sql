-- How things hang together in the newest gathered hour: if the upstream one is sick, the downstream one may be.
create or replace view public.resource_link as
select
  l.upstream,  -- Key of the thing that may make the other sick
  l.downstream,  -- Key of the thing that may suffer
  l.basis,  -- By what they are tied: attached, runs on, leads, read by, …
  l.seen_hour  -- Hour that said so (UTC): older than the newest where a source was silent since
from public.resource_links((select max(h.hour) from detect.load as h)) as l;

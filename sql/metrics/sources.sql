-- Each source with the resources of its newest hour, those without a response, and the end of its newest hour with a response.
select
  s.app,
  s.source,
  s.resources,
  s.resources - s.complete as missing,
  extract(epoch from s.complete_hour + interval '1 hour')::double precision as responded_at
from public.source_freshness as s

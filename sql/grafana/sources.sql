-- Sources with the newest hour that has a response, and the resources without one.
select
  s.app,
  s.source,
  s.resources,
  s.resources - s.answered as missing,
  s.answered_hour as newest_response,
  s.example_reason as example
from public.source_freshness as s
order by s.resources - s.answered desc, s.app asc, s.source asc

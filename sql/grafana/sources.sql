-- Sources with the newest hour that has a response, and the resources without one.
select
  s.app,
  s.source,
  s.resources,
  s.resources - s.complete as missing,
  s.complete_hour as newest_response,
  s.example_reason as example
from public.source_freshness as s
order by s.resources - s.complete desc, s.app asc, s.source asc

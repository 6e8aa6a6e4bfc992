-- What a source was asked for and didn't give, per hour; newest first.
create or replace view public.coverage_gaps as
select
  hour,  -- Start of the hour (UTC)
  app,  -- Spark app that asked
  source,  -- Source that was asked
  resource_name,  -- What was asked for
  status,  -- late, refused or missing
  message,  -- Why
  asked_at  -- When (UTC)
from detect.coverage
where status <> 'answered'
order by hour desc, app asc, source asc, resource_name asc;

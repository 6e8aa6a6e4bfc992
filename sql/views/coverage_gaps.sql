-- Resources for which a source did not respond, per hour; newest first.
create or replace view public.coverage_gaps as
select
  hour,  -- Start of the hour (UTC)
  app,  -- Spark app that queried it
  source,  -- Source that was queried
  resource_name,  -- Resource that was queried
  status,  -- late, failed, or missing
  message,  -- Why it did not respond
  queried_at  -- When it was queried (UTC)
from detect.coverage
where status <> 'complete'
order by hour desc, app asc, source asc, resource_name asc;

/*
title: What was not evaluated, and why
subject: coverage
description: >
  Findings with status unknown in the newest evaluated hour of each detector, grouped by message.
params:
  detector: {type: text, description: Detector id, default: null}
columns:
  detector: Detector id
  message: Why it was not evaluated
  resources: Resources with this message
  example_resource: One of these resources
  hour: Start of the hour (UTC)
*/
select
  detector,
  message,
  count(*) as resources,
  min(resource_name) as example_resource,
  hour
from public.not_evaluated
where not coalesce(is_not_applicable, false) and (:detector is null or detector = :detector)
group by detector, message, hour
order by resources desc, detector asc, message asc

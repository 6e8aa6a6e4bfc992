-- What the exceptions of a detector in the config matched.
select
  e.rule,
  e.first_hour,
  e.last_hour,
  e.matched_hour,
  e.resources
from detect.exception as e
where e.detector = :detector

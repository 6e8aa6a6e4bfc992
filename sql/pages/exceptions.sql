-- What the config's exceptions of a rule matched.
select
  e.rule,
  e.first_hour,
  e.last_hour,
  e.matched_hour,
  e.resources
from detect.exception as e
where e.detector = :detector

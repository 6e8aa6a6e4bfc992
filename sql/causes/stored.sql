-- The stored strengths of an hour.
select
  effect,
  cause,
  strength
from detect.cause
where hour = :hour
order by effect, cause

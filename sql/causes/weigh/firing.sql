-- Findings that fired in the hour or shortly before: an effect outlasts its cause by some hours.
select
  *,
  identity ->> 'cluster' as cluster
from detect.evaluation
where
  hour > :hour - :lookback_hours * interval '1 hour' and hour <= :hour
  and status = 'firing' and resource is not null

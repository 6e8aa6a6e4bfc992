-- One resource as of the newest stored hour; no row: not seen in the 24 hours before.
select
  r.kind,
  r.key,
  r.name,
  r.cluster,
  r.application,
  r.owner,
  r.seen_hour
from detect.resource as r
where r.key = :key

-- Resources as of the newest stored hour by key, after a key. Every filter may be null.
select
  r.kind,
  r.key,
  r.name,
  r.cluster,
  r.application,
  r.owner,
  r.seen_hour
from detect.resource as r
where
  (cast(:kind as text) is null or r.kind = cast(:kind as text))
  and (cast(:cluster as text) is null or r.cluster = cast(:cluster as text))
  and (cast(:owner as text) is null or r.owner = cast(:owner as text))
  and (cast(:application as text) is null or r.application = cast(:application as text))
  and (cast(:key as text) is null or r.key > cast(:key as text))
order by r.key
limit cast(:most as integer)

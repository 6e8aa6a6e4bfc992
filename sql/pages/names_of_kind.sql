-- Names of the stored resources of a kind, without their cluster; without a kind the keys of all.
select case when cast(:kind as text) is null then r.key else regexp_replace(r.key, '^[^:]+:([^/]*/)?', '') end as name
from detect.resource as r
where cast(:kind as text) is null or r.kind = :kind
order by name

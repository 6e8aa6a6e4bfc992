-- Stores the resources of an hour in place of those of an earlier hour.
insert into detect.resource (key, kind, name, cluster, application, owner, seen_hour, as_of)
select distinct on (r.key) r.key, r.kind, r.name, r.cluster, r.application, r.owner, r.seen_hour, cast(:hour as timestamptz)
from public.resources(cast(:hour as timestamptz)) as r
where r.key is not null
order by r.key asc, r.seen_hour desc

-- Changes of some resources in the three hours that end with an hour.
select c.*
from public.changes(:hour) as c
where c.resource = any(cast(:resources as text[]))
order by c.hour, c.resource, c.what

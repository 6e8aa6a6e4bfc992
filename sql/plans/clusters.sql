-- Kafka clusters of the newest 24 gathered hours.
select distinct r.cluster
from public.resource as r
where r.cluster is not null
order by r.cluster

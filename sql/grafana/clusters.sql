-- Kafka clusters that were seen in the newest 24 hours.
select distinct r.cluster
from public.resource as r
where r.cluster is not null
order by r.cluster

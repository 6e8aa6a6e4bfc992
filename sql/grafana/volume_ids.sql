-- EBS volumes of the newest gathered hour.
select v.volume_id
from public.volumes as v
order by v.volume_id

-- End of the newest complete hour in seconds since 1970.
select extract(epoch from max(c.ended_at))::double precision as ended_at
from public.newest_complete_hour as c

-- Seconds since the end of the newest complete hour.
select extract(epoch from now() - c.ended_at)::double precision as data_age_seconds
from public.newest_complete_hour as c

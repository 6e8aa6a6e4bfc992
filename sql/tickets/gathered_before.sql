-- Whether anything was gathered in the three hours before an hour.
select count(*) > 0 as is_known
from detect.load
where hour < cast(:hour as timestamptz) and hour >= cast(:hour as timestamptz) - interval '3 hours' and status = 'loaded'

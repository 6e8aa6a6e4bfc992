-- Whether any data was gathered in the three hours before an hour.
select count(*) > 0 as is_known
from detect.load
where hour < :hour and hour >= :hour - interval '3 hours' and status = 'loaded'

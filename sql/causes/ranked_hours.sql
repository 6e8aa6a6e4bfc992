-- Hours from :first_hour to :until_hour, exclusive, in which causes were ranked.
select hour
from detect.weighing
where hour >= :first_hour and hour < :until_hour
order by hour asc

-- Hours from :start to :finish, exclusive, in which causes were ranked.
select hour
from detect.weighing
where hour >= :start and hour < :finish
order by hour asc

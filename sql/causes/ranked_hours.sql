-- Hours from :start to :end, exclusive, in which causes were ranked.
select hour
from detect.weighing
where hour >= :start and hour < :end
order by hour asc

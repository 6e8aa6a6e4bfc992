-- Detectors with a firing finding in an hour.
select distinct detector
from detect.evaluation
where hour = :hour and status = 'firing'

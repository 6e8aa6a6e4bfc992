-- Newest hour that was loaded or evaluated.
select greatest((select max(l.hour) from detect.load as l), (select max(j.hour) from detect.detector_run as j)) as hour

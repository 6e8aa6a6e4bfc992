-- Resources and detectors that were not evaluated in the detector's newest hour, and why. Missing data is not healthy.
create or replace view public.not_evaluated as
select
  coalesce(e.detector, j.detector) as detector,  -- Detector id
  coalesce(e.resource_name, 'everything') as resource_name,  -- The resource's name; everything: the whole detector
  coalesce(e.message, j.message) as message,  -- Why it was not evaluated
  case when e.detector is null then j.status else 'unknown' end as status,  -- unknown: the resource; blocked or failed: the whole detector
  j.hour as hour,  -- Start of the hour (UTC)
  e.fingerprint,  -- Id of the finding, for joins and links
  coalesce(e.is_not_applicable, false) as is_not_applicable  -- Whether the detector does not apply (a detached volume, for example): no data is missing
from detect.detector as d
cross join lateral (select * from detect.detector_run as l where l.detector = d.detector order by l.hour desc limit 1) as j
left join detect.evaluation as e
  on j.status = 'evaluated' and j.detector = e.detector and j.hour = e.hour and e.status = 'unknown'
where j.status <> 'evaluated' or e.detector is not null;

-- Findings by evaluated hour: firing ones by severity, those that were not evaluated, and detectors that did not run. Filter by hour: each hour is read by itself.
create or replace view public.findings_by_hour as
select
  r.hour,  -- Start of the hour (UTC)
  f.critical,  -- Critical findings
  f.warning,  -- Warnings
  f.info,  -- Information
  f.unknown,  -- Findings that were not evaluated because data is missing
  r.detectors_failed  -- Detectors that failed or were blocked
from (
  select
    j.hour,
    count(*) filter (where j.status <> 'evaluated') as detectors_failed
  from detect.detector_run as j
  group by j.hour
) as r
cross join lateral (
  select
    count(*) filter (where e.status = 'firing' and e.severity = 'critical') as critical,
    count(*) filter (where e.status = 'firing' and e.severity = 'warning') as warning,
    count(*) filter (where e.status = 'firing' and e.severity = 'info') as info,
    count(*) filter (where e.status = 'unknown' and not e.is_not_applicable) as unknown
  from detect.evaluation as e
  where e.hour = r.hour and e.status <> 'ok'
) as f;

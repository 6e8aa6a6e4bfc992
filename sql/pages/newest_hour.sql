-- Current state in one row: the newest evaluated hour, open findings, and the number of resources not evaluated.
with found as (
  select
    count(*) filter (where muted is null) as open,
    count(*) filter (where muted is null and severity = 'critical') as critical,
    count(*) filter (where muted is null and severity = 'warning') as warning,
    count(*) filter (where muted is null and severity = 'info') as info,
    count(*) filter (where muted is not null) as muted
  from public.findings_now
),

newest as (
  select max(hour) as hour from detect.detector_run
)

select
  newest.hour,
  (select max(j.evaluated_at) from detect.detector_run as j where j.hour = newest.hour) as evaluated_at,
  (select sum(j.ok) from detect.detector_run as j where j.hour = newest.hour and j.status = 'evaluated') as healthy,
  found.open,
  found.critical,
  found.warning,
  found.info,
  found.muted,
  (select count(*) from public.not_evaluated where not is_not_applicable) as not_evaluated
from newest
cross join found

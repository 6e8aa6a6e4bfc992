-- Where things stand, in one row: the newest hour judged, and what is open or couldn't be judged now.
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
  select max(hour) as hour from detect.judgement
)

select
  newest.hour,
  (select max(j.judged_at) from detect.judgement as j where j.hour = newest.hour) as judged_at,
  (select sum(j.oks) from detect.judgement as j where j.hour = newest.hour and j.status = 'judged') as healthy,
  found.open,
  found.critical,
  found.warning,
  found.info,
  found.muted,
  (select count(*) from public.not_judged where not nothing_to_judge) as not_judged
from newest
cross join found

-- Where things stand, in one row: the newest hour judged, and what is open or couldn't be judged now.
with found as (
  select
    count(*) as open,
    count(*) filter (where severity = 'critical') as critical,
    count(*) filter (where severity = 'warning') as warning,
    count(*) filter (where severity = 'info') as info
  from public.findings_now
  where muted is null
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
  (select count(*) from public.findings_now where muted is not null) as muted,
  (select count(*) from public.not_judged where not nothing_to_judge) as not_judged
from newest
cross join found

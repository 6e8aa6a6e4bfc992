-- What couldn't be judged in each detector's newest hour, and why. Missing is not healthy.
create or replace view public.not_judged as
select
  coalesce(e.detector, j.detector) as detector,  -- Detector id
  coalesce(e.resource, 'everything') as resource,  -- The resource; everything: the whole detector
  coalesce(e.reason, j.reason) as reason,  -- Why
  case when e.detector is null then j.status else 'skip' end as status,  -- skip, or blocked / failed: the whole detector
  j.hour as hour,  -- The hour (UTC)
  e.fingerprint,  -- Id of the finding, for joins and links
  coalesce(e.nothing_to_judge, false) as nothing_to_judge  -- Not for want of data: a detached volume, say
from detect.detector as d
cross join lateral (select * from detect.judgement as l where l.detector = d.detector order by l.hour desc limit 1) as j
left join detect.evaluation as e
  on j.status = 'judged' and j.detector = e.detector and j.hour = e.hour and e.status = 'skip'
where j.status <> 'judged' or e.detector is not null;

-- Findings as periods of consecutive hours with the same status and severity, with the message of the last hour.
select
  p.fingerprint,
  p.detector,
  p.status,
  p.severity,
  min(p.hour) as since,
  max(p.hour) as last_hour,
  (array_agg(p.message order by p.hour desc))[1] as message
from (
  select
    e.fingerprint,
    e.detector,
    e.hour,
    case when e.is_not_applicable then 'not_applicable' else e.status end as status,
    e.severity,
    e.message,
    e.hour - interval '1 hour' * row_number() over (
      partition by e.fingerprint, e.status, e.severity, e.is_not_applicable order by e.hour
    ) as island
  from detect.evaluation as e
  where
    e.fingerprint = any(cast(:fingerprints as text[]))
    and e.hour >= cast(:start as timestamptz) and e.hour <= cast(:finish as timestamptz)
) as p
group by p.fingerprint, p.detector, p.status, p.severity, p.island
order by p.detector, min(p.hour)

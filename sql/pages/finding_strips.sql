-- Status of some findings, hour by hour.
select
  e.fingerprint,
  e.hour,
  e.status,
  e.severity,
  e.message
from detect.evaluation as e
where
  e.fingerprint = any(cast(:fingerprints as text[]))
  and e.hour > cast(:newest as timestamptz) - make_interval(hours => :hours) and e.hour <= cast(:newest as timestamptz)
order by e.fingerprint, e.hour

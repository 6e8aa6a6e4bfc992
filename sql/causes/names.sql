-- Names of findings, as last evaluated.
select distinct on (fingerprint)
  fingerprint,
  detector || ': ' || resource_name as name
from detect.evaluation
where fingerprint = any(cast(:fingerprints as text[]))
order by fingerprint asc, hour desc

-- Open findings of a volume, worst first.
select
  f.severity,
  f.title,
  f.resource_name as resource,
  f.owner,
  f.since_hour as since,
  f.message,
  f.ticket_key as ticket,
  f.fingerprint
from public.findings_now as f
inner join detect.evaluation as e
  on f.evaluated_hour = e.hour and f.detector = e.detector and f.fingerprint = e.fingerprint
where f.muted is null and e.identity ->> 'volume_id' = :volume
order by public.severity_rank(f.severity) asc, f.since_hour desc nulls last, f.fingerprint asc
limit 200

/*
title: Which findings are firing
subject: findings
description: >
  Findings that are firing in the newest evaluated hour, most severe first.
params:
  owner: {type: text, description: Owner of the resource, default: null, example: streaming}
  severity: {type: text, description: 'critical, warning, or info', default: null}
columns:
  severity: critical, warning, or info
  detector: Detector id
  resource_name: Resource
  owner: Owner; null if unassigned
  message: Message with measured values
  since_hour: First firing hour (UTC)
  ticket_key: Issue key in the tracker; null if there is none
  acknowledged_by: Person who acknowledged it; null if nobody did
  fingerprint: Id of the finding
*/
select
  severity,
  detector,
  resource_name,
  owner,
  message,
  since_hour,
  ticket_key,
  acknowledged_by,
  fingerprint
from public.findings_now
where status = 'firing' and (:owner is null or owner = :owner) and (:severity is null or severity = :severity)
order by public.severity_rank(severity) asc, since_hour asc, resource_name asc, detector asc

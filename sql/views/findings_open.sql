-- Open findings that are not muted, with the columns of lists and dashboards, and the places that they can be filtered by.
create or replace view public.findings_open as
select
  f.severity,  -- critical, warning, or info
  f.title,  -- Title of the detector
  f.resource_name as resource,  -- The resource
  f.owner,  -- Owner; null: unassigned
  f.since_hour as since,  -- First firing hour without a healthy hour since (UTC)
  f.message,  -- Message of its detector, with measured values
  f.ticket_key as ticket,  -- Issue key in the tracker; null: not filed
  f.fingerprint,  -- Id of the finding, for joins and links
  f.application,  -- Application that the resource belongs to
  e.identity ->> 'cluster' as cluster,  -- Kafka cluster; null for AWS resources
  e.identity ->> 'volume_id' as volume_id  -- EBS volume; null for other kinds
from public.findings_now as f
inner join detect.evaluation as e
  on f.evaluated_hour = e.hour and f.detector = e.detector and f.fingerprint = e.fingerprint
where f.muted is null;

-- Requests and responses of each source, for every hour of a period that ends with the newest. Metrics that an exporter
-- does not expose (`metrics of …`) are no request.
select
  c.app,
  c.source,
  c.hour,
  count(*) as requests,
  count(*) filter (where c.status = 'complete') as complete,
  count(*) filter (where c.status = 'late') as late,
  count(*) filter (where c.status = 'failed') as failed,
  count(*) filter (where c.status = 'missing') as missing,
  max(c.queried_at) as queried_at
from detect.coverage as c
where
  c.hour > cast(:newest as timestamptz) - make_interval(hours => :hours) and c.hour <= cast(:newest as timestamptz)
  and not starts_with(c.resource_name, 'metrics of ')
group by c.app, c.source, c.hour
order by c.app, c.source, c.hour

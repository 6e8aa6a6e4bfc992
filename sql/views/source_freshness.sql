-- Freshness of each source: the newest hour with a response, and how complete the newest hour is.
create or replace view public.source_freshness as
select
  c.app,  -- Spark app that queries it
  c.source,  -- Source
  max(c.hour) filter (where c.status = 'complete') as complete_hour,  -- Newest hour with a full response (UTC)
  max(c.hour) as queried_hour,  -- Newest hour for which it was queried (UTC)
  count(*) filter (where c.hour = newest.hour) as resources,  -- Resources queried for that hour
  count(*) filter (where c.hour = newest.hour and c.status = 'complete') as complete,  -- Of these, those with a full response
  max(c.queried_at) as queried_at,  -- When it was last queried (UTC)
  min(c.message) filter (where c.hour = newest.hour and c.status <> 'complete') as example_reason  -- One of the messages of the missing responses
from detect.coverage as c
inner join (select app, source, max(hour) as hour from detect.coverage group by app, source) as newest
  on c.app = newest.app and c.source = newest.source
where c.hour >= newest.hour - interval '7 days'
group by c.app, c.source, newest.hour
order by c.app, c.source;

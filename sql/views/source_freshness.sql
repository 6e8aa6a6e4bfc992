-- How fresh each source is: the newest hour it answered for, and how complete the newest hour is.
create or replace view public.source_freshness as
select
  c.app,  -- Spark app that asks
  c.source,  -- Source
  max(c.hour) filter (where c.status = 'answered') as answered_hour,  -- Newest hour with an answer (UTC)
  max(c.hour) as asked_hour,  -- Newest hour it was asked for (UTC)
  count(*) filter (where c.hour = newest.hour) as resources,  -- Resources asked for in that hour
  count(*) filter (where c.hour = newest.hour and c.status = 'answered') as answered,  -- Of these, answered
  max(c.asked_at) as asked_at,  -- When it was last asked (UTC)
  min(c.message) filter (where c.hour = newest.hour and c.status <> 'answered') as example_reason  -- One of the reasons why not
from detect.coverage as c
inner join (select app, source, max(hour) as hour from detect.coverage group by app, source) as newest
  on c.app = newest.app and c.source = newest.source
where c.hour >= newest.hour - interval '7 days'
group by c.app, c.source, newest.hour
order by c.app, c.source;

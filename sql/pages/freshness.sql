-- Responses of all sources in the newest queried hour in one row, and how many sources did not respond in the last three hours.
with newest as (
  select max(c.hour) as hour from detect.coverage as c
)

select
  newest.hour,
  count(*) filter (where c.hour = newest.hour) as requests,
  count(*) filter (where c.hour = newest.hour and c.status = 'complete') as complete,
  count(distinct(c.app, c.source)) as sources,
  count(distinct(c.app, c.source)) filter (where c.status = 'complete') as responding_sources
from newest
left join detect.coverage as c on c.hour > newest.hour - interval '3 hours' and newest.hour >= c.hour
group by newest.hour

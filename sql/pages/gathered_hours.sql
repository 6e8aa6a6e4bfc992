-- Newest hour for which any source was queried.
select max(hour) as hour from (
  select max(hour) as hour from detect.coverage
  union all
  select max(hour) as hour from detect.load
) as known

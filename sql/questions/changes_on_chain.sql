/*
title: What changed on the chain of a resource
subject: findings
description: >
  Restarts, resizes, config changes, and new group members on a resource and on everything that it depends on,
  before a time.
params:
  resource: {type: text, description: 'Key of the resource, as in the view resource', example: 'group:orders-prod/search'}
  before: {type: timestamp, description: End of the look-back (UTC); null is the end of the newest hour, default: null}
  hours: {type: hours, description: Look-back before that time, default: 24}
columns:
  hour: Hour of the change (UTC)
  resource: Key of the changed resource
  name: Its name
  what: What changed
  old_value: Value before
  new_value: Value after
  distance: Dependencies between it and the given resource; 0 is the resource itself
*/
-- The newest hour of the look-back.
with recursive span as (
  select coalesce(date_trunc('hour', :before - interval '1 microsecond', 'UTC'), max(l.hour)) as as_of
  from detect.load as l
),

-- Dependencies of that hour, once.
link as materialized (
  select
    l.upstream,
    l.downstream
  from span as s
  cross join lateral public.resource_links(s.as_of) as l
),

-- Everything upstream, at most 5 dependencies away.
walk (key, distance) as (
  select
    :resource,
    0
  union
  select
    l.upstream,
    w.distance + 1
  from walk as w
  inner join link as l on w.key = l.downstream
  where w.distance < 5
),

-- The nearest way to each resource.
chain as materialized (
  select
    key,
    min(distance) as distance
  from walk
  group by key
),

-- Changes of the whole fleet in the look-back, once.
change as materialized (
  select c.*
  from span as s
  cross join lateral public.changes(s.as_of, :hours) as c
)

select
  c.hour,
  c.resource,
  r.name,
  c.what,
  c.was as old_value,
  c.now as new_value,
  chain.distance
from change as c
inner join chain on c.resource = chain.key
left join public.resource as r on c.resource = r.key
order by c.hour desc, chain.distance asc, c.resource asc, c.what asc

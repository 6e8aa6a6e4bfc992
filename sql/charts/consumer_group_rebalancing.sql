/*
title: Rebalances by departed client
unit: rebalances
kind: lines
why: "Ten-minute slots of a day: one color is one client that leaves again and again."
*/
select
  date_bin('10 minutes', s.began_at, s.hour) as at,
  coalesce(g.client_id || ' on ' || g.host, 'no client') as series,
  count(*)::double precision as value
from metrics.group_step_hourly as s
left join lateral jsonb_to_recordset(s.gone) as g (client_id text, host text) on true
where s.cluster = :cluster and s.group_id = :group_id
and s.hour > :hour - interval '24 hours' and s.hour <= :hour
group by at, series
order by at, series

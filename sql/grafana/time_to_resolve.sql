-- Time from the first firing hour to the closing of tickets, by day of closing: median in seconds.
select
  date_trunc('day', t.closed_hour) as time,
  'median' as metric,
  percentile_cont(0.5) within group (order by extract(epoch from t.closed_hour - t.opened_hour)::double precision) as value
from tickets.ticket as t
where t.closed_hour >= cast(:start as timestamptz) and t.closed_hour < cast(:finish as timestamptz)
group by date_trunc('day', t.closed_hour)
order by date_trunc('day', t.closed_hour)

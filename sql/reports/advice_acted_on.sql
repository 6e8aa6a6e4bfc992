-- Findings with a saving that fired in a period, and that their detector no longer reported at its end: by list prices.
with detector as (
  select detector, max(hour) as hour
  from detect.detector_run
  where status = 'evaluated' and hour >= cast(:start as timestamptz) and hour < cast(:finish as timestamptz)
  group by detector
),

fired as (
  select distinct on (e.fingerprint)
    e.fingerprint,
    e.detector,
    e.hour,
    e.resource_name,
    e.owner,
    coalesce(
      (e.metrics ->> 'price_usd_per_month')::double precision
      - (e.metrics ->> 'advised_price_usd_per_month')::double precision,
      (e.metrics ->> 'saved_usd_per_month')::double precision,
      (e.metrics ->> 'usd_per_month')::double precision
    ) as saved_usd_per_month
  from detect.evaluation as e
  where
    e.hour >= cast(:start as timestamptz) and e.hour < cast(:finish as timestamptz) and e.status = 'firing'
  order by e.fingerprint asc, e.hour desc
)

select
  f.fingerprint,
  d.title,
  f.resource_name,
  f.owner,
  f.hour as last_firing_hour,
  f.saved_usd_per_month,
  sum(f.saved_usd_per_month) over () as total_usd,
  count(*) over () as total
from fired as f
inner join detector as n on f.detector = n.detector and f.hour < n.hour
inner join detect.detector as d on f.detector = d.detector
left join detect.evaluation as newest on f.fingerprint = newest.fingerprint and n.hour = newest.hour
where
  f.saved_usd_per_month > 0
  and coalesce(newest.status, 'ok') = 'ok'
  and (cast(:owner as text) is null or coalesce(f.owner, '') = cast(:owner as text))
order by f.saved_usd_per_month desc, f.fingerprint asc
limit cast(:most as integer)

-- Detectors with false positives that people reported in a time range, and the tickets that they opened in it.
select
  d.title as detector,
  count(distinct r.fingerprint) as findings_reported,
  (
    select count(*) from tickets.ticket as t
    where
      t.detector = r.detector
      and t.opened_hour >= cast(:start as timestamptz) and t.opened_hour < cast(:finish as timestamptz)
  ) as tickets_opened,
  max(r.said_at) as last_report
from tickets.response as r
left join detect.detector as d on r.detector = d.detector
where
  r.verb = 'false_positive'
  and r.said_at >= cast(:start as timestamptz) and r.said_at < cast(:finish as timestamptz)
group by r.detector, d.title
order by findings_reported desc, r.detector asc

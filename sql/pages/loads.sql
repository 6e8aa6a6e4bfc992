-- Rows that each app loaded for an hour, or the error.
select
  l.app,
  l.status,
  l.error,
  l.started_at,
  extract(epoch from l.finished_at - l.started_at)::double precision as took_seconds,
  (select sum(value::bigint) from jsonb_each_text(l.rows)) as rows
from detect.load as l
where l.hour = :hour
order by l.app

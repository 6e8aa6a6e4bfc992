-- Kept backtests of a detector, newest first; with their result only the asked one.
select
  b.backtest_id,
  b.params,
  b.who,
  b.requested_at,
  b.started_at,
  b.finished_at,
  b.message,
  case when b.backtest_id = cast(:asked as bigint) then b.result end as result,
  (
    select count(*) from detect.backtest as q where q.finished_at is null and q.backtest_id < b.backtest_id
  ) as before
from detect.backtest as b
where b.detector = :detector
order by b.backtest_id desc
limit cast(:most as integer)

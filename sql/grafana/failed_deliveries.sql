-- Tickets with changes that a tracker has not accepted yet.
select
  i.tracker,
  t.title,
  i.attempts,
  i.attempted_at,
  i.error
from tickets.issue as i
inner join tickets.ticket as t on i.ticket_id = t.ticket_id
where i.error is not null
order by i.attempted_at desc
limit 100

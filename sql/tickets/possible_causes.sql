-- Of each open ticket the likeliest possible cause: an open ticket, not younger, about a thing upstream of its own. The
-- nearest counts, then the older one. Five steps lead from a volume to the groups that its broker delays.
with recursive open_ticket as (
  select * from tickets.ticket
  where state = 'open' and thing is not null
),

link as materialized (
  select distinct
    l.upstream,
    l.downstream
  from public.thing_links(:hour) as l
),

path as (
  select
    t.ticket_id,
    t.thing as reached,
    0 as steps
  from open_ticket as t
  union
  select
    p.ticket_id,
    l.upstream,
    p.steps + 1
  from path as p
  inner join link as l on p.reached = l.downstream
  where p.steps < 5
)

select distinct on (t.ticket_id)
  t.ticket_id,
  t.cause_ticket_id as known_cause_id,
  t.summary_ticket_id,
  t.muted,
  c.ticket_id as cause_id,
  c.fingerprint as cause_fingerprint,
  c.title as cause_title,
  filed.external_url as cause_url
from path as p
inner join open_ticket as t on p.ticket_id = t.ticket_id
inner join open_ticket as c on p.reached = c.thing and p.ticket_id <> c.ticket_id
left join public.ticket_filed as filed on c.ticket_id = filed.ticket_id
where p.steps > 0 and c.opened_hour <= t.opened_hour
order by t.ticket_id asc, p.steps asc, c.opened_hour asc, c.ticket_id asc

-- Findings that share a cause with a finding: its ticket's cause, what follows from it, what it touches too.
with this as (
  select ticket_id, cause_ticket_id, touches from tickets.ticket
  where fingerprint = :fingerprint
  order by state = 'open' desc, ticket_id desc
  limit 1
)

select
  o.fingerprint,
  o.title,
  o.severity,
  o.state,
  (
    select min(touch) from jsonb_array_elements_text(this.touches) as touch where o.touches ? touch
  ) as shared,
  case
    when o.ticket_id = this.cause_ticket_id then 'Possible cause'
    when o.cause_ticket_id = this.ticket_id then 'May follow from this'
    else 'Related'
  end as relation
from this
inner join tickets.ticket as o
  on
    this.cause_ticket_id = o.ticket_id
    or this.ticket_id = o.cause_ticket_id
    or (
      o.state = 'open' and o.fingerprint <> :fingerprint
      and o.touches ?| array(select jsonb_array_elements_text(this.touches))
    )
order by
  o.ticket_id is distinct from this.cause_ticket_id, o.cause_ticket_id is distinct from this.ticket_id, o.ticket_id
limit 10

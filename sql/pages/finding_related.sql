-- Findings that share a cause with a finding: the ticket of its cause, its effects, and other findings on its resource.
with this as (
  select ticket_id from tickets.ticket
  where fingerprint = :fingerprint
  order by state = 'open' desc, ticket_id desc
  limit 1
)

select r.fingerprint, r.title, r.severity, r.state, r.relation
from this
cross join lateral tickets.related(this.ticket_id) as r
where r.fingerprint <> :fingerprint
order by r.nearness, r.ticket_id
limit 10

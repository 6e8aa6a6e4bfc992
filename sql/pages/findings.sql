-- Open findings: worst first, causes before their effects, then by the findings of their incident and the resources that
-- depend on theirs, with the ticket of the accepted cause. The page after a finding, or the first page if that finding is
-- no longer open. Every filter may be null.
with incident as (
  select
    coalesce(summary_ticket_id, ticket_id) as carrier_id,
    count(*) as findings
  from tickets.ticket
  where state = 'open'
  group by coalesce(summary_ticket_id, ticket_id)
),

ranked as (
  select
    f.*,
    cause.title as cause_title,
    cause.fingerprint as cause_fingerprint,
    count(*) over () as total,
    row_number() over (
      order by
        f.muted is not null asc, f.status <> 'firing' asc,
        public.severity_rank(f.severity) asc,
        cause.ticket_id is not null asc, incident.findings desc nulls last, public.reach_rank(f.resource) asc,
        f.since_hour desc nulls last, f.resource_name asc, f.fingerprint asc
    ) as place
  from public.findings_now as f
  left join tickets.ticket as t on f.ticket_id = t.ticket_id
  left join incident on coalesce(t.summary_ticket_id, t.ticket_id) = incident.carrier_id
  left join tickets.ticket as cause on t.cause_ticket_id = cause.ticket_id
  where
    f.severity = coalesce(cast(:severity as text), f.severity)
    and f.detector = coalesce(cast(:detector as text), f.detector)
    and (
      cast(:words as text) is null
      or position(lower(cast(:words as text)) in lower(concat_ws(' ', f.resource_name, f.title, f.message, f.ticket_key))) > 0
    )
)

select * from ranked
where place > coalesce((select r.place from ranked as r where r.fingerprint = cast(:after as text)), 0)
order by place
limit cast(:most as integer)

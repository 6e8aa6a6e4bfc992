-- Open findings: worst first, causes before their effects, then by the findings of their incident and the resources that
-- depend on theirs, with the ticket of the accepted cause. The page after a finding, or the first page if that finding is
-- no longer open. Every filter may be null; all words must match, in any
-- order.
with incident as (
  select
    coalesce(summary_ticket_id, ticket_id) as carrier_id,
    count(*) as findings
  from tickets.ticket
  where state = 'open'
  group by coalesce(summary_ticket_id, ticket_id)
),

placed as (
  select
    f.*,
    split_part(f.resource, ':', 1) as kind,
    -- The key of a resource of a cluster begins with the cluster; AWS resources have the cluster of their broker.
    case
      when split_part(f.resource, ':', 1) not in ('volume', 'instance', 'instances')
        then array[split_part(split_part(f.resource, ':', 2), '/', 1)]
      else array(
        select distinct split_part(split_part(b.downstream, ':', 2), '/', 1)
        from detect.resource_link as a
        inner join detect.resource_link as b on b.upstream in (a.upstream, a.downstream) and b.basis = 'runs on'
        where a.upstream = f.resource and a.basis in ('attached', 'runs on', 'one of')
        union
        select split_part(split_part(c.downstream, ':', 2), '/', 1)
        from detect.resource_link as c
        where c.upstream = f.resource and c.basis = 'claimed by'
      )
    end as clusters
  from public.findings_now as f
  where
    (cast(:severity as text) is null or f.severity = :severity)
    and (cast(:detector as text) is null or f.detector = :detector)
    and (cast(:kind as text) is null or split_part(f.resource, ':', 1) = :kind)
    and (cast(:owner as text[]) is null or coalesce(f.owner, 'unassigned') = any(cast(:owner as text[])))
    and (cast(:application as text) is null or f.application = :application)
    and case cast(:state as text)
      when 'firing' then f.status = 'firing' and f.muted is null
      when 'healthy' then f.status = 'ok'
      when 'not_evaluated' then f.status in ('unknown', 'unseen')
      when 'acknowledged' then f.acknowledged_by is not null and f.muted is null
      when 'muted' then f.muted is not null
      else true
    end
    and not exists (
      select from unnest(cast(:words as text[])) as word
      where position(word in lower(concat_ws(
        ' ', f.resource_name, f.resource, f.title, f.detector, f.owner, f.application, f.message, f.ticket_key
      ))) = 0
    )
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
  from placed as f
  left join tickets.ticket as t on f.ticket_id = t.ticket_id
  left join incident on coalesce(t.summary_ticket_id, t.ticket_id) = incident.carrier_id
  left join tickets.ticket as cause on t.cause_ticket_id = cause.ticket_id
  where cast(:cluster as text) is null or :cluster = any(f.clusters)
)

select * from ranked
where place > coalesce((select r.place from ranked as r where r.fingerprint = cast(:after as text)), 0)
order by place
limit cast(:most as integer)

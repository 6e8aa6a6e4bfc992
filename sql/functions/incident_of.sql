-- The incident of a ticket: each finding with its cause and the evidence, as a tree. The root comes first, then the effects
-- of each finding.
create or replace function tickets.incident_of(of_ticket bigint) returns table (
  ticket_id bigint, cause_ticket_id bigint, depth integer, fingerprint text, detector text, title text, severity text,
  state text, resource text, opened_hour timestamptz, resolved_hour timestamptz, message text, strength double precision
) language sql stable as $$
  with recursive carrier as (
    select c.ticket_id, coalesce(c.root_ticket_id, c.ticket_id) as root_id
    from tickets.ticket as t
    inner join tickets.ticket as c on coalesce(t.summary_ticket_id, t.ticket_id) = c.ticket_id
    where t.ticket_id = of_ticket
  ),

  member as (
    select m.*
    from carrier
    inner join tickets.ticket as m on carrier.ticket_id in (m.ticket_id, m.summary_ticket_id)
  ),

  tree as (
    select m.ticket_id, 0 as depth, array[0::double precision] as place
    from member as m
    inner join carrier on m.ticket_id = carrier.root_id
    union all
    select m.ticket_id, t.depth + 1, t.place || extract(epoch from m.opened_hour)::double precision || m.ticket_id
    from tree as t
    inner join member as m on t.ticket_id = m.cause_ticket_id
    where t.depth < 10
  )

  select m.ticket_id, m.cause_ticket_id, coalesce(t.depth, 1), m.fingerprint, m.detector, m.title, m.severity, m.state,
    m.resource, m.opened_hour, coalesce(m.closed_hour, m.resolved_hour), w.message, w.strength
  from member as m
  left join tree as t on m.ticket_id = t.ticket_id
  left join tickets.ticket as cause on m.cause_ticket_id = cause.ticket_id
  left join lateral (
    select c.message, c.strength
    from detect.cause as c
    where c.hour <= m.last_firing_hour and c.hour >= m.opened_hour and c.effect = m.fingerprint
    and c.cause = cause.fingerprint
    order by c.hour desc limit 1
  ) as w on true
  order by t.place nulls last, m.opened_hour, m.ticket_id
$$;

-- Tickets that are related to a ticket, for notifications and pages.
create or replace function tickets.related(of_ticket bigint) returns table (
  ticket_id bigint, fingerprint text, title text, severity text, state text, external_url text,
  relation text, nearness integer
) language sql stable as $$
  with this as (
    select * from tickets.ticket as t where t.ticket_id = of_ticket
  ),

  tie as (
    select c.effect, c.cause
    from this
    inner join detect.cause as c on c.hour = this.last_firing_hour and this.fingerprint in (c.effect, c.cause)
    where c.is_possible
  ),

  other as (
    select
      o.*,
      case
        when o.ticket_id = this.cause_ticket_id then 'Cause'
        when o.cause_ticket_id = this.ticket_id then 'Downstream effect'
        when o.fingerprint in (select cause from tie) and o.state = 'open' then 'Possible cause'
        when o.fingerprint in (select effect from tie) and o.state = 'open' then 'Possible downstream effect'
        when o.ticket_id = this.previous_ticket_id then 'Earlier ticket of the same finding'
        when o.state = 'open' and o.resource = this.resource then 'Same resource'
      end as relation
    from this
    inner join tickets.ticket as o on o.ticket_id <> this.ticket_id
  )

  select o.ticket_id, o.fingerprint, o.title, o.severity, o.state, filed.external_url, o.relation,
    case o.relation
      when 'Cause' then 0 when 'Possible cause' then 0
      when 'Downstream effect' then 1 when 'Possible downstream effect' then 1
      else 2
    end
  from other as o
  left join public.ticket_filed as filed on o.ticket_id = filed.ticket_id
  where o.relation is not null
$$;

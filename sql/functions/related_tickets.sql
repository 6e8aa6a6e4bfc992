-- What a ticket has to do with others: asked by the tracker's texts and by the pages.
create or replace function tickets.related(of_ticket bigint) returns table (
  ticket_id bigint, fingerprint text, title text, severity text, state text, external_url text,
  relation text, nearness integer
) language sql stable as $$
  select
    o.ticket_id, o.fingerprint, o.title, o.severity, o.state, filed.external_url,
    case
      when o.ticket_id = this.cause_ticket_id then 'Possible cause'
      when o.ticket_id = this.previous_ticket_id then 'Earlier ticket of the same finding'
      when o.cause_ticket_id = this.ticket_id then 'May follow from this'
      else 'About the same thing'
    end,
    case when o.ticket_id = this.cause_ticket_id then 0 when o.cause_ticket_id = this.ticket_id then 1 else 2 end
  from tickets.ticket as this
  inner join tickets.ticket as o
    on
      o.ticket_id in (this.cause_ticket_id, this.previous_ticket_id)
      or o.cause_ticket_id = this.ticket_id
      or (o.state = 'open' and o.ticket_id <> this.ticket_id and o.thing = this.thing)
  left join public.ticket_filed as filed on o.ticket_id = filed.ticket_id
  where this.ticket_id = of_ticket
$$;

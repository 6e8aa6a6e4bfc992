-- Brokers that copy for a reassignment: those that receive replicas, and the leaders that they copy from.
create or replace function public.reassignment_brokers(as_of timestamptz) returns table (
  cluster text, broker_id integer
) language sql stable rows 100 as $$
  select m.cluster, m.leader
  from public.partitions_moving(as_of) as m
  where m.leader is not null
  union
  select m.cluster, cast(a.broker_id as integer)
  from public.partitions_moving(as_of) as m
  cross join lateral jsonb_array_elements_text(m.adding) as a (broker_id)
$$;
comment on function public.reassignment_brokers is
'Brokers that take part in the reassignments of an hour: they receive replicas, or lead partitions that are copied.';

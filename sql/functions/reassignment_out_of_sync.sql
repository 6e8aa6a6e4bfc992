-- Replicas that are out of sync on the brokers that take part in a reassignment, and how many were before it began. Not
-- the replicas that are being added, nor those of brokers that are down, restarted in the hour, or are in sync again.
create or replace function public.reassignment_out_of_sync(as_of timestamptz) returns table (
  cluster text,
  replicas bigint,
  replicas_before bigint,                      -- in the hour before the reassignment began
  broker_ids text[]                            -- that hold them now
) language sql stable rows 10 as $$
  with taking_part as materialized (
    select * from public.reassignment_brokers(as_of)
  ),

  moving as materialized (
    select * from public.partitions_moving(as_of)
  )

  select
    p.cluster,
    count(*) filter (where p.hour = as_of),
    count(*) filter (where p.hour < as_of),
    array_agg(distinct l.broker_id) filter (where p.hour = as_of)
  from public.reassignments(as_of) as g
  -- `offset 0` keeps the planner from reading the partitions of all clusters.
  cross join lateral (
    select * from metrics.partition_hourly as one
    where one.hour in (as_of, g.running_since - interval '1 hour') and one.cluster = g.cluster
    and one.missing_brokers is not null and one.isr > 0
    offset 0  -- noqa: AM09
  ) as p
  cross join lateral jsonb_array_elements_text(p.missing_brokers) as l (broker_id)
  left join moving as m
    on p.hour = as_of and p.cluster = m.cluster and p.topic = m.topic and p.partition = m.partition
  left join inventory.broker_hourly as o
    on o.hour = as_of and p.cluster = o.cluster and l.broker_id = cast(o.broker_id as text)
  left join metrics.broker_hourly as h
    on p.hour = h.hour and p.cluster = h.cluster and l.broker_id = cast(h.broker_id as text)
  left join metrics.broker_hourly as led on p.hour = led.hour and p.cluster = led.cluster and p.leader = led.broker_id
  where
    g.running_since is not null
    and coalesce(not m.adding @> to_jsonb(cast(l.broker_id as integer)), true)
    and o.is_listed
    and coalesce(h.process_started_at < p.hour, true)
    and led.under_replicated_partitions is distinct from 0  -- otherwise it is in sync again
    and exists (
      select 1 from taking_part as t
      where t.cluster = p.cluster and (t.broker_id = p.leader or cast(t.broker_id as text) = l.broker_id)
    )
  group by p.cluster
$$;
comment on function public.reassignment_out_of_sync is
'Replicas out of sync on brokers that take part in a reassignment, without those being added: now and before it began.';

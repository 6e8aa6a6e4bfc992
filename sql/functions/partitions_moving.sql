-- Partitions that get a replica on another broker.
create or replace function public.partitions_moving(as_of timestamptz) returns table (
  cluster text, topic text, partition integer,
  adding jsonb,                                -- ids of the brokers that receive a replica
  leader integer,
  isr integer,                                 -- null: not reported
  moving_bytes double precision,               -- of all replicas to be made
  left_bytes double precision                  -- still to be copied; null: not reported
) language sql stable rows 1000 as $$
  select
    r.cluster,
    r.topic,
    r.partition,
    r.adding,
    p.leader,
    p.isr,
    r.partition_bytes * jsonb_array_length(r.adding),
    r.left_bytes
  from inventory.reassignment_hourly as r
  left join metrics.partition_hourly as p
    on r.hour = p.hour and r.cluster = p.cluster and r.topic = p.topic and r.partition = p.partition
  where r.hour = as_of and r.adding <> '[]'
$$;
comment on function public.partitions_moving is
'Partitions whose reassignment adds replicas in an hour, with their leader, in-sync replicas, and bytes left to copy.';

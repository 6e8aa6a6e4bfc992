-- The partition reassignments of each cluster: since when, how much is left, and how fast it is copied.
create or replace function public.reassignments(as_of timestamptz) returns table (
  cluster text,
  is_reported boolean,                         -- false: the cluster did not list its reassignments
  is_running boolean,                          -- null: not reported
  running_since timestamptz,                   -- the first hour, of at most 14 days
  moving_partitions bigint,
  moving_bytes double precision,               -- of all replicas to be made
  left_bytes double precision,                 -- of the partitions with a reported size
  copied_bytes_per_second double precision,    -- into all brokers that take part; null: one of them is unknown
  written_bytes_per_second double precision,   -- by producers to the moving partitions, of the broker that gets most of it
  throttle_bytes_per_second double precision   -- the lowest in force on a broker that takes part
) language sql stable rows 100 as $$
  with listed as materialized (
    select
      b.cluster,
      bool_or(b.adding_replicas is not null) as is_reported,
      bool_or(b.adding_replicas > 0) as is_running
    from inventory.broker_hourly as b
    where b.hour = as_of
    group by b.cluster
  ),

  past as materialized (
    select h.*
    from public.reassignment_hours(
      array(select l.cluster from listed as l where l.is_running), as_of - interval '336 hours', as_of
    ) as h
  ),

  -- The hours after the newest in which the cluster listed none.
  began as (
    select p.cluster, min(p.hour) as running_since
    from past as p
    where
      p.is_running
      and p.hour > coalesce(
        (select max(q.hour) from past as q where q.cluster = p.cluster and q.is_reported and not q.is_running), '-infinity'
      )
    group by p.cluster
  ),

  moving as materialized (
    select * from public.partitions_moving(as_of)
  ),

  taking_part as materialized (
    select * from public.reassignment_brokers(as_of)
  ),

  progress as (
    select
      m.cluster,
      count(*) as partitions,
      sum(m.moving_bytes) as moving_bytes,
      sum(m.left_bytes) as left_bytes
    from moving as m
    group by m.cluster
  ),

  copied as (
    select
      t.cluster,
      case when bool_and(b.reassignment_bytes_in_per_second is not null)
        then sum(b.reassignment_bytes_in_per_second) end as bytes_per_second
    from taking_part as t
    left join inventory.broker_hourly as o on o.hour = as_of and t.cluster = o.cluster and t.broker_id = o.broker_id
    left join metrics.broker_hourly as b on b.hour = as_of and t.cluster = b.cluster and t.broker_id = b.broker_id
    where o.is_listed is distinct from false
    group by t.cluster
  ),

  written as (
    select one.cluster, max(one.bytes_per_second) as bytes_per_second
    from (
      select
        m.cluster,
        a.broker_id,
        sum(t.bytes_in / nullif(t.covered_seconds, 0) / i.partitions) as bytes_per_second
      from moving as m
      cross join lateral jsonb_array_elements_text(m.adding) as a (broker_id)
      inner join metrics.topic_hourly as t on t.hour = as_of and m.cluster = t.cluster and m.topic = t.topic
      inner join inventory.topic_hourly as i on i.hour = as_of and m.cluster = i.cluster and m.topic = i.topic
      group by m.cluster, a.broker_id
    ) as one
    group by one.cluster
  ),

  -- A rate without a topic that names throttled replicas limits nothing.
  in_force as (
    select r.cluster, min(r.bytes_per_second) as bytes_per_second
    from public.throttle_rates(as_of) as r
    inner join taking_part as t on r.cluster = t.cluster and r.broker_id = t.broker_id
    where
      r.setting in ('leader.replication.throttled.rate', 'follower.replication.throttled.rate')
      and exists (
        select from inventory.topic_hourly as n
        where n.hour = as_of and n.cluster = r.cluster
        and (n.leader_throttled_replicas is not null or n.follower_throttled_replicas is not null)
      )
    group by r.cluster
  )

  select
    l.cluster,
    l.is_reported,
    l.is_running,
    b.running_since,
    p.partitions,
    p.moving_bytes,
    p.left_bytes,
    c.bytes_per_second,
    w.bytes_per_second,
    f.bytes_per_second
  from listed as l
  left join began as b on l.cluster = b.cluster
  left join progress as p on l.cluster = p.cluster
  left join copied as c on l.cluster = c.cluster
  left join written as w on l.cluster = w.cluster
  left join in_force as f on l.cluster = f.cluster
$$;
comment on function public.reassignments is
'Partition reassignments of each cluster in an hour: since when they run, what is left, and the rates that bound them.';

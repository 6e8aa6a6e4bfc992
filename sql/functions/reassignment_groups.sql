-- Consumer groups that read from brokers which take part in a reassignment, in clusters where the lag of a group has
-- risen since it began.
create or replace function public.reassignment_groups(
  as_of timestamptz, late_seconds double precision, lag_ratio double precision
) returns table (
  cluster text, group_id text,
  has_risen boolean,                           -- lags by late_seconds, and by lag_ratio times its maximum in the hours compared
  lag_seconds double precision,                -- the longest on a partition that these brokers lead
  late_partitions bigint,                      -- that lag by late_seconds
  led_late_partitions bigint,                  -- of these, led by these brokers
  affected jsonb                               -- {topic, partition} of those
) language sql stable rows 100 as $$
  with taking_part as materialized (
    select * from public.reassignment_brokers(as_of)
  ),

  -- Compared with the day before the reassignment, and with this hour of the four weeks before.
  risen as materialized (
    select g.cluster, g.group_id
    from metrics.consumer_group_hourly as g
    inner join public.reassignments(as_of) as s on g.cluster = s.cluster
    where
      g.hour = as_of
      and s.running_since is not null
      and g.lag_seconds_max >= late_seconds
      and g.lag_seconds_max >= lag_ratio * (
        select max(h.lag_seconds_max)
        from metrics.consumer_group_hourly as h
        where
          h.cluster = g.cluster and h.group_id = g.group_id and h.hour < s.running_since
          and h.hour in (
            select s.running_since - make_interval(hours => n) from generate_series(1, 24) as n
            union
            select as_of - make_interval(days => n) from generate_series(1, 28) as n
          )
      )
  ),

  -- `offset 0` keeps the planner from reading the partitions of all clusters, here and below.
  led as (
    select p.cluster, p.topic, p.partition
    from (select distinct r.cluster from risen as r) as one
    cross join lateral (
      select * from metrics.partition_hourly as each_partition
      where each_partition.hour = as_of and each_partition.cluster = one.cluster
      offset 0  -- noqa: AM09
    ) as p
    inner join taking_part as t on p.cluster = t.cluster and p.leader = t.broker_id
  ),

  read as (
    select
      c.cluster,
      c.group_id,
      c.topic,
      c.partition,
      c.lag_seconds,
      c.lag_seconds >= late_seconds as is_late,
      led.cluster is not null as is_led
    from (select distinct r.cluster from risen as r) as one
    cross join lateral (
      select * from metrics.consumer_partition_hourly as each_partition
      where each_partition.hour = as_of and each_partition.cluster = one.cluster
      offset 0  -- noqa: AM09
    ) as c
    left join led on c.cluster = led.cluster and c.topic = led.topic and c.partition = led.partition
  )

  select
    r.cluster,
    r.group_id,
    b.group_id is not null,
    max(r.lag_seconds) filter (where r.is_led),
    count(*) filter (where r.is_late),
    count(*) filter (where r.is_late and r.is_led),
    (
      jsonb_agg(jsonb_build_object('topic', r.topic, 'partition', r.partition) order by r.topic, r.partition)
        filter (where r.is_late and r.is_led)
    )
  from read as r
  left join risen as b on r.cluster = b.cluster and r.group_id = b.group_id
  group by r.cluster, r.group_id, b.group_id
  having bool_or(r.is_led)
$$;
comment on function public.reassignment_groups is
'Consumer groups on brokers that take part in a reassignment: whether their lag has risen, and on which partitions.';

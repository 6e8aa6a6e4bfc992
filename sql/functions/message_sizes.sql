-- Mean message size of each topic in an hour and in each hour of the 4 weeks before; for topics with enough messages and
-- bytes in one of the last 24 hours for a meaningful mean. Hours with fewer are null.
create or replace function public.message_sizes(
  as_of timestamptz, min_messages double precision, min_bytes double precision,
  larger_ratio double precision                -- growth over the smallest hour before; topics with less growth have no past
) returns table (
  cluster text, topic text,
  message_bytes double precision, messages double precision,  -- in the hour
  bytes_per_second double precision, readers double precision,
  past_hours timestamptz[], past_message_bytes double precision[], past_messages double precision[],
  least_message_bytes double precision, known_hours bigint    -- in the hours before
)
-- The planner has no statistics of the newest hours: it expects one row and would choose nested loops and sorts.
language sql stable rows 1000 set enable_nestloop = off set enable_sort = off set work_mem = '64MB' as $$
  with recent as materialized (
    select
      cluster,
      topic,
      min(bytes_in / messages_in) filter (where hour < as_of) as least_message_bytes,
      count(*) filter (where hour < as_of) as known_hours
    from metrics.topic_hourly
    where hour >= as_of - interval '672 hours' and hour <= as_of
    and messages_in * 3600 >= min_messages * covered_seconds and bytes_in * 3600 >= min_bytes * covered_seconds
    group by cluster, topic
    having max(hour) > as_of - interval '24 hours'
  ),

  now_ as materialized (
    select
      t.cluster,
      t.topic,
      t.messages_in,
      t.covered_seconds,
      t.bytes_in,
      t.bytes_out,
      size.bytes as message_bytes,
      r.least_message_bytes,
      r.known_hours
    from recent as r
    inner join metrics.topic_hourly as t on r.cluster = t.cluster and r.topic = t.topic and t.hour = as_of
    cross join lateral (
      select
        case
          when t.messages_in * 3600 >= min_messages * t.covered_seconds and t.bytes_in * 3600 >= min_bytes * t.covered_seconds
            then t.bytes_in / t.messages_in
        end as bytes
    ) as size
  ),

  past as (
    select
      t.cluster,
      t.topic,
      array_agg(t.hour) as hours,
      array_agg(size.bytes) as message_bytes,
      array_agg(t.messages_in * 3600 / nullif(t.covered_seconds, 0)) as messages
    from now_ as n
    inner join metrics.topic_hourly as t using (cluster, topic)
    cross join lateral (
      select
        case
          when t.messages_in * 3600 >= min_messages * t.covered_seconds and t.bytes_in * 3600 >= min_bytes * t.covered_seconds
            then t.bytes_in / t.messages_in
        end as bytes
    ) as size
    where t.hour >= as_of - interval '672 hours' and t.hour < as_of
    and n.message_bytes >= larger_ratio * n.least_message_bytes
    group by t.cluster, t.topic
  )

  select
    n.cluster,
    n.topic,
    n.message_bytes,
    n.messages_in * 3600 / nullif(n.covered_seconds, 0),
    n.bytes_in / nullif(n.covered_seconds, 0),
    n.bytes_out / nullif(n.bytes_in, 0),
    p.hours,
    p.message_bytes,
    p.messages,
    n.least_message_bytes,
    n.known_hours
  from now_ as n
  left join past as p on n.cluster = p.cluster and n.topic = p.topic
$$;
comment on function public.message_sizes is
'Mean message size of each topic in an hour and in each hour of the 4 weeks before, for topics with enough messages recently; null in hours with too few.';

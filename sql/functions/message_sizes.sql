-- What a message of each topic takes in an hour, and took in each hour of the 4 weeks before; of topics that got enough
-- messages and bytes in one of the last 24 hours for their mean to say something. Hours with fewer are null.
create or replace function public.message_sizes(
  as_of timestamptz, min_messages double precision, min_bytes double precision
) returns table (
  cluster text, topic text,
  message_bytes double precision, messages double precision,  -- an hour
  bytes_per_second double precision, readers double precision,
  past_hours timestamptz[], past_message_bytes double precision[], past_messages double precision[],
  least_message_bytes double precision, known_hours bigint    -- of the hours before
)
-- The planner's statistics don't know the newest hours: for the one row that it expects it would take nested loops and sorts.
language sql stable rows 1000 set enable_nestloop = off set enable_sort = off set work_mem = '64MB' as $$
  with recent as materialized (
    select cluster, topic
    from metrics.topic_hourly
    where hour > as_of - interval '24 hours' and hour <= as_of
    and messages_in * 3600 >= min_messages * covered_seconds and bytes_in * 3600 >= min_bytes * covered_seconds
    group by cluster, topic
  ),

  past as (
    select
      t.cluster,
      t.topic,
      array_agg(t.hour) as hours,
      array_agg(size.bytes) as message_bytes,
      array_agg(t.messages_in * 3600 / nullif(t.covered_seconds, 0)) as messages,
      min(size.bytes) as least_message_bytes,
      count(size.bytes) as known_hours
    from recent as r
    inner join metrics.topic_hourly as t using (cluster, topic)
    cross join lateral (
      select
        case
          when t.messages_in * 3600 >= min_messages * t.covered_seconds and t.bytes_in * 3600 >= min_bytes * t.covered_seconds
            then t.bytes_in / t.messages_in
        end as bytes
    ) as size
    where t.hour >= as_of - interval '672 hours' and t.hour < as_of
    group by t.cluster, t.topic
  )

  select
    t.cluster,
    t.topic,
    case
      when t.messages_in * 3600 >= min_messages * t.covered_seconds and t.bytes_in * 3600 >= min_bytes * t.covered_seconds
        then t.bytes_in / t.messages_in
    end,
    t.messages_in * 3600 / nullif(t.covered_seconds, 0),
    t.bytes_in / nullif(t.covered_seconds, 0),
    t.bytes_out / nullif(t.bytes_in, 0),
    p.hours,
    p.message_bytes,
    p.messages,
    p.least_message_bytes,
    coalesce(p.known_hours, 0)
  from recent as r
  inner join metrics.topic_hourly as t on r.cluster = t.cluster and r.topic = t.topic and t.hour = as_of
  left join past as p on t.cluster = p.cluster and t.topic = p.topic
$$;
comment on function public.message_sizes is
'What a message of each topic takes in an hour, and took in each hour of the 4 weeks before, of topics that got enough of them lately; null in hours with too few.';

-- Time since the internal topics of each application, or each plain topic, received a record, and the longest pause before.
-- Computed from the sums of their log-end offsets at the same time of each day: offsets only increase, so a sum that did
-- not change is a day without records. Days with an unknown offset do not count. Only topics without records for at least
-- quiet_days; others have rest_days 0.
create or replace function public.idle_topics(as_of timestamptz, quiet_days integer, history_days integer, internal boolean)
returns table (
  cluster text, name text,                     -- an application's id, or a topic
  known_days double precision,                 -- since its first known day; null: today's offsets are not known
  rest_days double precision,                  -- since the day of its last known record
  longest_pause_days double precision,         -- between records before, or before the first of them
  observed_days double precision,              -- before the last record; 0: no record was seen
  unknown_days bigint                          -- with an unknown offset
)
-- The planner has no statistics of the newest hour: it expects one row and would choose nested loops.
language sql stable rows 10000 set enable_nestloop = off as $$
  with topic as materialized (
    select cluster, case when internal then application_id else topic end as name, topic
    from inventory.topic_hourly
    where hour = as_of
    and case when internal then application_id is not null and kind <> 'plain' else kind = 'plain' end
  ),

  edge as materialized (
    select
      t.cluster,
      t.name,
      count(*) filter (where p.hour = as_of and p.log_end_offset is null) = 0
      and count(distinct p.topic) filter (where p.hour = as_of) = count(distinct t.topic) as is_known,
      sum(p.log_end_offset) filter (where p.hour = as_of) as last_sum,
      case when count(*) filter (where p.hour < as_of and p.log_end_offset is null) = 0
        then sum(p.log_end_offset) filter (where p.hour < as_of)
      end as first_sum
    from topic as t
    left join metrics.partition_hourly as p
      on t.cluster = p.cluster and t.topic = p.topic and p.hour in (as_of, as_of - make_interval(days => quiet_days))
    group by t.cluster, t.name
  ),

  -- Topic by topic, by the primary key: PostgreSQL has no statistics of the newest hours.
  topic_day as materialized (
    select t.cluster, t.name, n.ago, l.end_sum, l.is_known
    from topic as t
    inner join edge as e
      on t.cluster = e.cluster and t.name = e.name and e.is_known
      and e.last_sum = coalesce(e.first_sum, e.last_sum)
    cross join generate_series(0, history_days) as n (ago)
    cross join lateral (
      select sum(p.log_end_offset) as end_sum, count(p.log_end_offset) = count(*) as is_known
      from metrics.partition_hourly as p
      where p.hour = as_of - make_interval(days => n.ago) and p.cluster = t.cluster and p.topic = t.topic
      having count(*) > 0
    ) as l
  ),

  every_day as (
    select cluster, name, ago, sum(end_sum) as end_sum, bool_and(is_known) as is_known
    from topic_day
    group by cluster, name, ago
  ),

  day as (
    select * from every_day where is_known
  ),

  gap as (
    select cluster, name, count(*) as days
    from every_day
    where not is_known
    group by cluster, name
  ),

  -- A day is active if its sum differs from that of the previous known day.
  marked as (
    select
      *,
      end_sum <> lag(end_sum) over application as is_active,
      row_number() over application = 1 as is_first
    from day
    window application as (partition by cluster, name order by ago desc)
  ),

  paused as (
    select *, lag(ago) over (partition by cluster, name order by ago desc) - ago as pause_days
    from marked
    where is_active or is_first
  ),

  rest as (
    select
      cluster,
      name,
      max(ago) as known_days,
      min(ago) as rest_days,
      max(pause_days) as longest_pause_days,
      max(ago) - min(ago) as observed_days
    from paused
    group by cluster, name
  )

  select
    e.cluster,
    e.name,
    case when e.is_known then coalesce(r.known_days, quiet_days) end,
    coalesce(r.rest_days, 0),
    coalesce(r.longest_pause_days, 0),
    coalesce(r.observed_days, 0),
    coalesce(g.days, 0)
  from edge as e
  left join rest as r using (cluster, name)
  left join gap as g using (cluster, name)
$$;
comment on function public.idle_topics is
'Time since the internal topics of each application, or each plain topic, received a record, and the longest pause before, by their offsets of each day.';

-- Of an application whose internal topics have rested for some days: the one that has the same stores, read at the end of
-- the hour what that one read at its end, and whose topics came within a day of its last record.
create or replace function public.heir_of(
  of_cluster text, of_application text, rest_days double precision, as_of timestamptz
) returns text language sql stable as $$
  with application as materialized (
    select
      t.application_id,
      array_agg(t.topic) as topics,
      -- What the topics are called behind the application's id.
      array_agg(substr(t.topic, length(t.application_id) + 1) order by t.topic) as stores
    from inventory.topic_hourly as t
    where t.hour = as_of and t.cluster = of_cluster and starts_with(t.topic, t.application_id || '-')
    group by t.application_id
  ),

  -- Its last record is of the day before `ended`.
  life as (
    select
      as_of - rest_days * interval '1 day' as ended,
      as_of - (rest_days + 1) * interval '1 day' as last_used,
      as_of - (rest_days + 2) * interval '1 day' as before,
      as_of - (rest_days - 1) * interval '1 day' as after
  )

  select min(heir.application_id)
  from application as gone
  inner join application as heir on gone.stores = heir.stores
  cross join life
  where gone.application_id = of_application
  and exists (
    select from inventory.topic_hourly as t
    where t.hour = life.before and t.cluster = of_cluster and t.topic = any(gone.topics)
  )
  and not exists (
    select from inventory.topic_hourly as t
    where t.hour = life.before and t.cluster = of_cluster and t.topic = any(heir.topics)
  )
  and exists (
    select from inventory.topic_hourly as t
    where t.hour = life.after and t.cluster = of_cluster and t.topic = any(heir.topics)
  )
  and (
    select array_agg(distinct p.topic order by p.topic)
    from metrics.consumer_partition_hourly as p
    where p.hour in (life.ended, life.last_used) and p.cluster = of_cluster and p.group_id = gone.application_id
    and not p.topic = any(gone.topics)
  ) = (
    select array_agg(distinct p.topic order by p.topic)
    from metrics.consumer_partition_hourly as p
    where p.hour = as_of and p.cluster = of_cluster and p.group_id = heir.application_id
    and not p.topic = any(heir.topics)
  )
$$;
comment on function public.heir_of is
'The application that seems to have replaced one whose internal topics rest: the same stores and sources, begun when that one ended; null: none is known.';

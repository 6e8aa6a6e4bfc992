-- Of applications whose internal topics have rested for some days: the one that has the same stores, read at the end of
-- the hour what that one read at its end, and whose topics came within a day of its last record. All are asked for at
-- once, as the topics of each cluster have to be read for them.
create or replace function public.successor_groups(
  of_clusters text[], of_applications text[], of_rest_days double precision[], as_of timestamptz
) returns table (cluster text, application_id text, successor text) language sql stable rows 100 as $$
  with application as materialized (
    select
      t.cluster,
      t.application_id,
      array_agg(t.topic) as topics,
      -- What the topics are called behind the application's id.
      array_agg(substr(t.topic, length(t.application_id) + 1) order by t.topic) as stores
    from inventory.topic_hourly as t
    where t.hour = as_of and t.cluster = any(of_clusters) and starts_with(t.topic, t.application_id || '-')
    group by t.cluster, t.application_id
  ),

  -- The last record is of the day before `ended`.
  gone as materialized (
    select
      a.*,
      as_of - g.rest_days * interval '1 day' as ended,
      as_of - (g.rest_days + 1) * interval '1 day' as last_used,
      as_of - (g.rest_days + 2) * interval '1 day' as before,
      as_of - (g.rest_days - 1) * interval '1 day' as after
    from unnest(of_clusters, of_applications, of_rest_days) as g (cluster, application_id, rest_days)
    inner join application as a using (cluster, application_id)
  )

  select gone.cluster, gone.application_id, min(newer.application_id)
  from gone
  inner join application as newer on gone.cluster = newer.cluster and gone.stores = newer.stores
  where exists (
    select from inventory.topic_hourly as t
    where t.hour = gone.before and t.cluster = gone.cluster and t.topic = any(gone.topics)
  )
  and not exists (
    select from inventory.topic_hourly as t
    where t.hour = gone.before and t.cluster = gone.cluster and t.topic = any(newer.topics)
  )
  and exists (
    select from inventory.topic_hourly as t
    where t.hour = gone.after and t.cluster = gone.cluster and t.topic = any(newer.topics)
  )
  and (
    select array_agg(distinct p.topic order by p.topic)
    from metrics.consumer_partition_hourly as p
    where p.hour in (gone.ended, gone.last_used) and p.cluster = gone.cluster and p.group_id = gone.application_id
    and not p.topic = any(gone.topics)
  ) = (
    select array_agg(distinct p.topic order by p.topic)
    from metrics.consumer_partition_hourly as p
    where p.hour = as_of and p.cluster = gone.cluster and p.group_id = newer.application_id
    and not p.topic = any(newer.topics)
  )
  group by gone.cluster, gone.application_id
$$;
comment on function public.successor_groups is
'The applications that seem to have replaced those whose internal topics rest: the same stores and sources, begun when the others ended.';

-- Topics that a group no longer reads although it has commits on them: its members read other topics, and no offset was committed in the hour.
create or replace function public.abandoned_topics(as_of timestamptz) returns table (
  cluster text, group_id text, topic text
) language sql stable rows 100 as $$
  with assigned as materialized (
    select distinct m.cluster, m.group_id, a.topic
    from inventory.consumer_member_hourly as m
    cross join lateral jsonb_object_keys(m.assignment) as a (topic)
    where m.hour = as_of
  ),

  silent as materialized (
    select p.cluster, p.group_id, p.topic
    from metrics.consumer_partition_hourly as p
    where p.hour = as_of
    group by p.cluster, p.group_id, p.topic
    having bool_and(p.commits = 0)
  )

  select s.cluster, s.group_id, s.topic
  from silent as s
  inner join (select distinct a.cluster, a.group_id from assigned as a) as g using (cluster, group_id)
  left join assigned as a using (cluster, group_id, topic)
  where a.cluster is null
$$;
comment on function public.abandoned_topics is
'Topics that a group no longer reads although it has commits on them: the group has members, none of them has the topic assigned, and no offset was committed on it in the hour.';

-- Members of groups with an assigned topic on which their group has no committed offset.
create or replace function public.members_without_commits(of_cluster text, as_of timestamptz) returns table (
  topic text, client_id text, host text, group_id text
) language sql stable as $$
  select distinct a.topic, h.client_id, h.host, h.group_id
  from inventory.consumer_member_hourly as h
  cross join lateral jsonb_object_keys(h.assignment) as a (topic)
  where h.hour = as_of and h.cluster = of_cluster
  and not exists (
    select 1 from metrics.consumer_partition_hourly as p
    where p.hour = as_of and p.cluster = of_cluster and p.group_id = h.group_id and p.topic = a.topic
  )
$$;
comment on function public.members_without_commits is
'Members of a cluster''s groups with an assigned topic on which their group has no committed offset.';

-- Topics that must keep the same number of partitions as a topic that a group reads: other plain and repartition topics
-- that are assigned to the group, and changelogs and repartition topics of the application, with the same number today.
create or replace function public.copartitioned_topics(
  of_hour timestamptz, of_cluster text, of_topic text, of_group_id text
) returns table (
  names text,                                  -- separated by commas; null: none
  owners text                                  -- of these topics; null: unassigned
) language sql stable rows 1 as $$
  select
    string_agg(other.topic, ', ' order by other.topic) as names,
    string_agg(distinct detect.owner_of(public.resource_key('topic', of_cluster, other.topic)), ', ') as owners
  from inventory.topic_hourly as own
  inner join inventory.topic_hourly as other using (hour, cluster, partitions)
  where own.hour = of_hour and own.cluster = of_cluster and own.topic = of_topic and other.topic <> own.topic
  and (
    other.application_id = of_group_id
    or (
      other.kind in ('plain', 'repartition')
      and exists (
        select 1 from metrics.consumer_partition_hourly as p
        where p.hour = of_hour and p.cluster = of_cluster and p.group_id = of_group_id and p.topic = other.topic
        and p.is_assigned is distinct from false
      )
    )
  )
$$;
comment on function public.copartitioned_topics is
'Topics that must keep the same number of partitions as a topic that a group reads, and their owners.';

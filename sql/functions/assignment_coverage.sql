-- How many of the partitions that are assigned to a group it commits offsets for. Untracked is a partition that the group
-- has had for two hours without a commit, although records arrived: it has a row from its first commit on.
create or replace function public.assignment_coverage(of_cluster text, of_group_id text, as_of timestamptz) returns table (
  assigned bigint, untracked bigint,
  untracked_place text                         -- one of them: topic-partition
) language sql stable rows 1 as $$
  with assigned as materialized (
    select distinct
      m.hour,
      a.topic,
      p.partition::integer as partition
    from inventory.consumer_member_hourly as m
    cross join lateral jsonb_each(m.assignment) as a (topic, partitions)
    cross join lateral jsonb_array_elements_text(a.partitions) as p (partition)
    where m.hour in (as_of, as_of - interval '1 hour') and m.cluster = of_cluster and m.group_id = of_group_id
  )

  select
    count(*),
    count(*) filter (where s.is_untracked),
    min(a.topic || '-' || a.partition) filter (where s.is_untracked)
  from assigned as a
  left join assigned as b on a.hour > b.hour and a.topic = b.topic and a.partition = b.partition
  left join metrics.partition_hourly as l
    on b.hour = l.hour and l.cluster = of_cluster and b.topic = l.topic and b.partition = l.partition
  left join metrics.consumer_partition_hourly as c
    on a.hour = c.hour and c.cluster = of_cluster and c.group_id = of_group_id and a.topic = c.topic
    and a.partition = c.partition
  cross join lateral (
    select c.cluster is null and l.log_end_offset_last > l.log_end_offset_first as is_untracked
  ) as s
  where a.hour = as_of
  having count(*) > 0
$$;
comment on function public.assignment_coverage is
'How many of the partitions that are assigned to a group have no committed offset for two hours although records arrived.';

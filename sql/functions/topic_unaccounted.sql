-- What the topics of a cluster sent in an hour beyond what groups say they read and what is usual without them.
create or replace function public.topic_unaccounted(
  of_cluster text, as_of timestamptz, page_cache_share double precision, usual_days integer, usual_hours integer,
  settled_hours integer
) returns table (
  topic text, covered_seconds double precision, sent_bytes double precision, accounted_bytes double precision,
  unaccounted_bytes double precision, may_be_restored boolean, group_ids jsonb
) language sql stable as $$
  with settled as materialized (
    select * from public.settled_applications(of_cluster, as_of, settled_hours)
  ),

  by_groups as materialized (
    select
      r.topic,
      sum(r.accounted_bytes) as accounted_bytes,
      sum(r.fresh_bytes) as fresh_bytes,
      jsonb_agg(r.group_id order by r.group_id) as group_ids
    from public.group_reads(of_cluster, as_of, page_cache_share) as r
    group by r.topic
  ),

  topic as materialized (
    select t.*, g.accounted_bytes, g.fresh_bytes, g.group_ids
    from public.topic_bytes as t
    left join by_groups as g using (topic)
    where t.hour = as_of and t.cluster = of_cluster and t.kind <> 'internal' and t.bytes_out is not null
  ),

  -- To find out what is usual takes longest, and matters only where groups don't account for all, or of changelogs.
  usual as materialized (
    select * from public.usual_readers(
      of_cluster, as_of, usual_days, usual_hours,
      array(select t.topic from topic as t where t.bytes_out > coalesce(t.accounted_bytes, 0) or t.kind = 'changelog')
    )
  )

  select
    t.topic, nullif(t.covered_seconds, 0), t.bytes_out, coalesce(t.accounted_bytes, 0),
    -- What is usual beyond what groups read of new records goes to readers that never commit, whatever else groups read.
    greatest(
      t.bytes_out - coalesce(t.accounted_bytes, 0)
      - greatest(u.sent_per_byte * t.bytes_in - coalesce(t.fresh_bytes, 0), 0), 0
    ),
    t.kind = 'changelog' and (s.application_id is null or u.sent_per_byte is null),
    t.group_ids
  from topic as t
  left join usual as u using (topic)
  left join settled as s using (application_id)
$$;
comment on function public.topic_unaccounted is
'What the topics of a cluster sent in an hour beyond what the commits of groups account for and beyond what readers without commits are usually sent, over the time that JMX counted. A changelog may be restored unless its application has long been settled.';

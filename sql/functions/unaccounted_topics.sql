-- Bytes out of each topic of a cluster against its known readers, in the time that JMX covers. Accounted are the bytes that
-- follow from commits. Of the rest, the baseline belongs to readers that never commit. What is left beyond both is a possible
-- restore (restored_bytes), or the reads of a group without commits (likewise), or has no known reader (unaccounted_bytes).
-- Reads from tiered storage are no disk reads: those that no lagging group explains are not counted.
create or replace function public.unaccounted_topics(
  of_cluster text, of_hour timestamptz, loud_seconds double precision, page_cache_share double precision,
  baseline_days integer, baseline_hours integer, settled_hours integer
) returns table (
  topic text,
  covered_seconds double precision,            -- null: none
  sent_bytes double precision,
  accounted_bytes double precision,
  restored_bytes double precision,
  unaccounted_bytes double precision,
  group_ids jsonb,                             -- groups that commit; null: none
  remote_unknown_bytes double precision        -- without a known reader, and tiered storage's part is not exposed
) language sql stable as $$
  with accounted as materialized (
    select
      topic,
      sum(accounted_bytes) as accounted_bytes,
      sum(fresh_bytes) as fresh_bytes,
      -- No commit since the disk reads began, or an offset reset with too little time to commit again.
      bool_or(is_cold and (is_silent or (rewinds > 0 and loud_seconds <= 2 * seconds_between_commits))) as is_unreported,
      coalesce(sum(accounted_bytes) filter (where is_remote), 0) as remote_bytes,
      jsonb_agg(group_id order by group_id) as group_ids
    from public.group_reads(of_cluster, of_hour, page_cache_share, loud_seconds)
    group by topic
  ),

  sent as materialized (
    select
      t.*,
      coalesce(a.accounted_bytes, 0) as accounted_bytes,
      coalesce(a.fresh_bytes, 0) as fresh_bytes,
      t.is_tiered and t.remote_fetch_bytes is null as is_remote_unknown,
      greatest(coalesce(t.remote_fetch_bytes, 0) - coalesce(a.remote_bytes, 0), 0) as remote_bytes,
      a.is_unreported,
      a.group_ids
    from public.topic_bytes as t
    left join accounted as a on t.topic = a.topic
    where t.hour = of_hour and t.cluster = of_cluster
    and t.kind in ('plain', 'changelog', 'repartition') and t.bytes_out is not null
  ),

  -- The baseline is the slowest part, so it is computed only for topics with unaccounted bytes.
  baseline_share as materialized (
    select topic, sent_per_byte
    from public.baseline_readers(
      of_cluster, of_hour, baseline_days, baseline_hours,
      array(select s.topic from sent as s where s.bytes_out > s.accounted_bytes)
    )
  ),

  -- Materialized: otherwise each topic is joined with each application.
  settled as materialized (
    select application_id from public.settled_applications(of_cluster, of_hour, settled_hours)
  )

  select
    t.topic,
    nullif(t.covered_seconds, 0),
    t.bytes_out,
    t.accounted_bytes,
    case when k.is_known then beyond.bytes else 0 end,
    case when k.is_known or t.is_remote_unknown then 0 else beyond.bytes end,
    t.group_ids,
    case when k.is_known is not true and t.is_remote_unknown then beyond.bytes else 0 end
  from sent as t
  left join baseline_share as u on t.topic = u.topic
  left join settled on t.application_id = settled.application_id
  cross join lateral (
    -- The baseline beyond new records read by groups belongs to readers that never commit.
    select
      greatest(
        t.bytes_out - t.accounted_bytes - t.remote_bytes - greatest(u.sent_per_byte * t.bytes_in - t.fresh_bytes, 0), 0
      ) as bytes
  ) as beyond
  cross join lateral (
    select
      t.is_unreported
      or (t.kind = 'changelog' and (settled.application_id is null or u.sent_per_byte is null)) as is_known
  ) as k
$$;
comment on function public.unaccounted_topics is
'Bytes out of each topic of a cluster against its known readers, in the time that JMX covers.';

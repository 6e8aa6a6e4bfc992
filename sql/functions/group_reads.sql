-- What each group of a cluster read of each topic in an hour, and how much of that isn't in the page cache.
create or replace function public.group_reads(
  of_cluster text, as_of timestamptz, page_cache_share double precision, cold_seconds double precision
) returns table (
  group_id text, topic text, fresh_bytes double precision, cold_bytes double precision,
  accounted_bytes double precision, lag_seconds double precision, lag_bytes double precision, rewinds numeric,
  seconds_between_commits double precision, is_cold boolean, is_silent boolean, is_unknown boolean
) language sql stable as $$
  with page_cache as materialized (
    select c.bytes, c.seconds from public.page_cache(as_of, as_of, page_cache_share) as c where c.cluster = of_cluster
  )

  select
    r.group_id, r.topic, r.fresh_bytes,
    -- All of it if the group lags beyond the page cache, else the part of its backlog that is older.
    case
      when l.is_cold then r.fresh_bytes + r.backlog_bytes
      else greatest(r.backlog_bytes - coalesce(r.bytes_in_per_second * c.seconds, 0), 0)
    end,
    -- What it read before its first commit, or between a jump back and the next one, isn't seen: about one step more of
    -- those between commits, and one for each jump; at most as much again. One that jumped back reads faster since, for
    -- as long as the disks are read.
    (r.fresh_bytes + r.backlog_bytes) * case
      when not l.is_cold or r.commits_per_partition is null then 1
      else 1 + least((1 + coalesce(r.rewinds, 0)) / greatest(l.steps - 1, 1), 1)
    end,
    r.lag_seconds, r.lag_bytes, r.rewinds, r.seconds_between_commits, l.is_cold, r.is_silent, r.is_unknown
  from public.topic_readers_of(as_of) as r
  cross join page_cache as c
  cross join lateral (
    select
      coalesce(r.lag_seconds > c.seconds or r.lag_bytes > c.bytes, false) as is_cold,
      case
        when r.rewinds > 0 then least(r.commits_per_partition, cold_seconds / r.seconds_between_commits)
        else r.commits_per_partition
      end as steps
  ) as l
  where r.cluster = of_cluster
$$;
comment on function public.group_reads is
'What each group of a cluster read of each topic in an hour: bytes of new records (fresh), from disk as they weren''t in the page cache any more (cold), and all that its commits account for, with what lies between them.';

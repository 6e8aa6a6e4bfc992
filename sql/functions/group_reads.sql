-- Bytes that each group of a cluster read from each topic in an hour, and how many of them were not in the page cache. What
-- a group reads beyond the local retention of a topic comes from tiered storage, so it is not cold.
create or replace function public.group_reads(
  of_cluster text, as_of timestamptz, page_cache_share double precision, cold_seconds double precision
) returns table (
  group_id text, topic text, fresh_bytes double precision, cold_bytes double precision,
  accounted_bytes double precision, lag_seconds double precision, lag_bytes double precision, rewinds numeric,
  seconds_between_commits double precision, is_cold boolean, is_silent boolean, is_unknown boolean,
  is_remote boolean
) language sql stable as $$
  with page_cache as materialized (
    select c.bytes, c.seconds from public.page_cache(as_of, as_of, page_cache_share) as c where c.cluster = of_cluster
  )

  select
    r.group_id, r.topic, r.fresh_bytes,
    -- All of it if the lag exceeds the page cache, otherwise the part of the backlog that is older.
    case
      when t.is_remote then 0
      when l.is_cold then r.fresh_bytes + r.backlog_bytes
      else greatest(r.backlog_bytes - coalesce(r.bytes_in_per_second * c.seconds, 0), 0)
    end,
    -- Reads before its first commit, or between a rewind and the next commit, are not in its commits: about one more
    -- interval between commits, and one more for each rewind, at most as much again. After a rewind the group reads
    -- faster, for as long as it reads from disk.
    (r.fresh_bytes + r.backlog_bytes) * case
      when not l.is_cold or r.commits_per_partition is null then 1
      else 1 + least((1 + coalesce(r.rewinds, 0)) / greatest(l.steps - 1, 1), 1)
    end,
    r.lag_seconds, r.lag_bytes, r.rewinds, r.seconds_between_commits, l.is_cold, r.is_silent, r.is_unknown,
    t.is_remote
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
  cross join lateral public.reads_remotely(r.cluster, r.topic, as_of, r.lag_seconds, r.lag_bytes) as t (is_remote)
  where r.cluster = of_cluster
$$;
comment on function public.group_reads is
'Bytes that each group of a cluster read from each topic in an hour: new records (fresh), records that were no longer in the page cache (cold), and all that its commits account for, including the reads between them.';

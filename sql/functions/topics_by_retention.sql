-- The topics of an hour with retention by time, and the bytes (all replicas) that a shorter retention would save where no
-- consumer group needed the records.
create or replace function public.topics_by_retention(
  as_of timestamptz, days integer, least_seconds double precision, kept_over_needed double precision,
  min_bytes double precision, keep text
) returns table (
  cluster text, topic text,
  owner text,                                  -- of topics with too long a retention
  groups bigint, kept_seconds double precision, needed_seconds double precision,
  log_bytes double precision,
  cluster_was_there boolean,                   -- whether its groups were collected since the days began
  is_evaluated boolean,                           -- large, or of unknown size, and none of `keep`
  is_known boolean,                            -- whether all inputs are known; not required without consumers
  saved_bytes double precision,                -- null: the retention is not too long
  saved_usd_per_month double precision
) language sql stable rows 10000 set enable_nestloop = off as $$
  with topic as materialized (
    select
      r.*,
      need.seconds as needed_seconds,
      gain.is_free,
      case
        when
          r.cluster_was_there and not r.went_back and not r.is_unknown and gain.is_free
          and r.written_bytes_per_second is not null
          and r.kept_seconds >= kept_over_needed * need.seconds and gain.saved_bytes >= min_bytes
          then gain.saved_bytes
      end as saved_bytes
    from public.topic_retentions(as_of, days, min_bytes) as r
    cross join lateral (select greatest(r.read_seconds, least_seconds) as seconds) as need
    -- A log younger than its retention holds less than a full one: the inflow of the needed time stays.
    cross join lateral (
      select
        keep = '' or r.topic !~ keep as is_free,
        r.log_bytes - greatest(
          r.log_bytes * need.seconds / nullif(r.kept_seconds, 0), r.written_bytes_per_second * need.seconds
        ) as saved_bytes
    ) as gain
  ),

  owned as (
    select r.cluster, r.topic, t.owner
    from topic as r
    inner join public.resources(as_of) as t on t.kind = 'topic' and t.key = public.resource_key('topic', r.cluster, r.topic)
    where r.saved_bytes is not null
  )

  select
    r.cluster,
    r.topic,
    o.owner,
    r.groups,
    r.kept_seconds,
    r.needed_seconds,
    r.log_bytes,
    r.cluster_was_there,
    coalesce(r.log_bytes >= min_bytes, true) and r.is_free,
    r.kept_seconds is not null
    and (r.groups is null or not r.is_unknown and num_nulls(r.written_bytes_per_second, r.log_bytes) = 0),
    r.saved_bytes,
    r.saved_bytes / power(1024, 3) * price.usd_per_gib
  from topic as r
  left join owned as o using (cluster, topic)
  left join inventory.broker_storage_price(as_of) as price using (cluster)
$$;
comment on function public.topics_by_retention is
'The topics of an hour with retention by time, and the bytes that a shorter retention would save. See the detector topic_retention_wasteful.';

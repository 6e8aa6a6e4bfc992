-- Topics that keep their records much longer than anybody needed them, and the bytes, all replicas, that this takes.
create or replace function public.topics_overkept(
  as_of timestamptz, days integer, least_seconds double precision, kept_over_needed double precision,
  min_bytes double precision, keep text
) returns table (
  cluster text, topic text, owner text, groups bigint, kept_seconds double precision, needed_seconds double precision,
  log_bytes double precision, saved_bytes double precision, saved_usd_per_month double precision
) language sql stable rows 100 set enable_nestloop = off as $$
  select
    r.cluster,
    r.topic,
    t.owner,
    r.groups,
    r.kept_seconds,
    need.seconds,
    r.log_bytes,
    saved.bytes,
    saved.bytes / 1073741824 * price.usd_per_gib
  from public.topic_retentions(as_of, days) as r
  cross join lateral (select greatest(r.read_seconds, least_seconds) as seconds) as need
  -- A log that isn't as old as its topic keeps holds less: what comes in while it is needed stays.
  cross join lateral (
    select r.log_bytes - greatest(
      r.log_bytes * need.seconds / r.kept_seconds, r.written_bytes_per_second * need.seconds
    ) as bytes
  ) as saved
  left join inventory.broker_storage_price(as_of) as price using (cluster)
  left join public.things(as_of) as t on t.kind = 'topic' and t.key = public.thing_key('topic', r.cluster, r.topic)
  where r.cluster_was_there and r.groups > 0 and not r.went_back and not r.is_unknown and r.kept_seconds > 0
  and r.written_bytes_per_second is not null
  and r.kept_seconds >= kept_over_needed * need.seconds and saved.bytes >= min_bytes
  and (keep = '' or r.topic !~ keep)
$$;
comment on function public.topics_overkept is
'Topics that keep their records much longer than anybody needed them, and what that takes. See the detector topic_retention_wasteful.';

-- All topics that topic_retention_wasteful found in its newest hour, with the parameters of that hour; most bytes first.
create or replace view public.topics_retention as
select
  o.cluster,  -- Kafka cluster
  o.topic,  -- Topic
  o.owner,  -- Owner, if known
  o.groups,  -- Groups that read it
  o.kept_seconds,  -- Age at which records are deleted
  o.needed_seconds,  -- Largest time lag of its groups, or the minimum that the detector allows
  o.log_bytes,  -- Size of its logs, all replicas
  o.saved_bytes,  -- Bytes that the needed retention would free, all replicas
  o.saved_usd_per_month,  -- Price of these bytes, by the brokers' volumes; null: not known
  j.hour  -- Start of the hour (UTC)
from (
  select
    hour,
    params
  from detect.detector_run
  where detector = 'topic_retention_wasteful' and status = 'evaluated'
  order by hour desc
  limit 1
) as j
cross join lateral public.topics_by_retention(
  j.hour, (j.params ->> 'days')::integer, (j.params ->> 'least_seconds')::double precision,
  (j.params ->> 'kept_over_needed')::double precision, (j.params ->> 'min_bytes')::double precision, j.params ->> 'keep'
) as o
where o.saved_bytes is not null
order by o.saved_bytes desc, o.cluster asc, o.topic asc;

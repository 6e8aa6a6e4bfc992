-- All topics that topic_retention_wasteful found in its newest hour, with its parameters of that hour; most bytes first.
create or replace view public.topics_retention as
select
  o.cluster,  -- Kafka cluster
  o.topic,  -- Topic
  o.owner,  -- Whose it is, as far as known
  o.groups,  -- Groups that read it
  o.kept_seconds,  -- Age at which its records are deleted
  o.needed_seconds,  -- Age of the oldest that a group had yet to read, or the least that the detector grants
  o.log_bytes,  -- Size of its logs, all replicas
  o.saved_bytes,  -- What it would save to keep only what is needed, all replicas
  o.saved_usd_per_month,  -- Its price, by the brokers' volumes; null: not known
  j.hour  -- The hour (UTC)
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

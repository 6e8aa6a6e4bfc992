-- All topics that topic_overpartitioned found in its newest hour, with its parameters of that hour; most partitions first.
create or replace view public.topics_low_rate as
select
  l.cluster,  -- Kafka cluster
  l.topic,  -- Topic
  l.owner,  -- Owner, if known
  l.p95_bytes_per_second,  -- Bytes produced per second, 95th percentile of the hours
  l.partitions,  -- Partitions that it has
  l.needed_partitions,  -- Partitions that it needs
  l.freed_partitions,  -- Partitions that it does not need
  l.freed_replicas,  -- Replicas of these partitions
  l.freed_open_files,  -- Open files of these replicas on brokers, at least
  l.is_new,  -- Whether it was created within the week before the evaluated days
  j.hour  -- Start of the hour (UTC)
from (
  select
    hour,
    params
  from detect.detector_run
  where detector = 'topic_overpartitioned' and status = 'evaluated'
  order by hour desc
  limit 1
) as j
cross join lateral public.topics_by_rate(
  j.hour, (j.params ->> 'days')::integer, (j.params ->> 'partitions_at_least')::integer,
  (j.params ->> 'bytes_per_partition')::double precision, (j.params ->> 'set_topics')::integer
) as l
where l.freed_partitions is not null
order by l.freed_replicas desc, l.cluster asc, l.topic asc;

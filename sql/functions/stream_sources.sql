-- Source nodes of a Kafka Streams application by topic: how old records are when they are read, and how long they wait in
-- the log for the application.
create or replace function public.stream_sources(
  of_cluster text, of_application_id text, of_endpoints text[], as_of timestamptz
) returns table (
  subtopology text, node text, topic text,
  is_own boolean,                              -- a repartition topic of the application
  age_mean_seconds double precision, age_min_seconds double precision,
  log_seconds double precision, log_most_seconds double precision,  -- means of the partitions; null: not known
  log_worst_seconds double precision           -- of the partition with the longest wait
) language sql stable rows 10 as $$
  select
    n.subtopology,
    n.node,
    t.topic,
    coalesce(i.kind, 'plain') = 'repartition',
    sum(n.age_mean_ms / 1000 * n.readings) / sum(n.readings),
    min(n.age_min_ms / 1000),
    w.least_seconds,
    w.most_seconds,
    w.worst_seconds
  from metrics.stream_node_hourly as n
  cross join lateral jsonb_array_elements_text(n.topics) as t (topic)
  left join inventory.topic_hourly as i on i.hour = as_of and i.cluster = of_cluster and t.topic = i.topic
  left join public.topic_waits(of_cluster, of_application_id, as_of) as w on t.topic = w.topic
  where n.hour = as_of and n.cluster = of_cluster and n.endpoint = any(of_endpoints)
  group by n.subtopology, n.node, t.topic, i.kind, w.least_seconds, w.most_seconds, w.worst_seconds
$$;
comment on function public.stream_sources is
'Source nodes of a Kafka Streams application by topic, with the age of their records and the wait in the log.';

-- Records per second that one thread or member of a group can process: the greater of two values. One is 1 ÷ mean record
-- latency of the hour (Kafka Streams, at least least_records). The other is the highest rate of one member in an hour in
-- which the group caught up by caught_up_seconds. One row for each group with either source, known or not.
create or replace function public.thread_capacity(
  of_hour timestamptz, history_days integer, least_records double precision, caught_up_seconds double precision,
  spread double precision
) returns table (
  cluster text,
  group_id text,
  threads double precision,                    -- members, or threads of the application where it has no members
  records double precision,                    -- processed in the hour, by JMX of the application
  record_latency_ms double precision,          -- mean of the hour
  seen_per_second double precision,            -- highest mean rate of a member in any hour of the history
  thread_per_second double precision,
  is_estimate boolean                          -- true: from the latency; false: from a catch-up phase
) language sql stable as $$
  with application as materialized (
    select
      cluster,
      application_id as group_id,
      nullif(sum(stream_threads_alive), 0) as threads,
      sum(records_processed) as records,
      sum(record_latency_ms * records_processed)
      / nullif(sum(records_processed) filter (where record_latency_ms is not null), 0) as record_latency_ms
    from metrics.jvm_app_hourly
    where hour = of_hour and application_id is not null
    group by cluster, application_id
  ),

  -- The highest mean rate per member of an hour.
  speed as materialized (
    select
      cluster,
      group_id,
      max(records_consumed / 3600.0 / nullif(least(members, partitions), 0)) as seen_per_second
    from metrics.consumer_group_hourly
    where hour > of_hour - make_interval(days => history_days) and hour <= of_hour
    group by cluster, group_id
  ),

  -- The highest rate of one member in an hour in which the group caught up.
  caught_up as materialized (
    select
      s.cluster,
      s.group_id,
      max(s.busy_member_per_second) as busy_per_second
    from metrics.consumer_group_hourly as s
    inner join metrics.consumer_group_hourly as b
      on s.hour = b.hour + interval '1 hour' and s.cluster = b.cluster and s.group_id = b.group_id
    where s.hour > of_hour - make_interval(days => history_days) and s.hour <= of_hour
    and s.busy_member_per_second > 0 and s.lag_seconds_max <= b.lag_seconds_max - caught_up_seconds
    group by s.cluster, s.group_id
  )

  select
    g.cluster,
    g.group_id,
    coalesce(nullif(g.members, 0), a.threads) as threads,
    a.records,
    a.record_latency_ms,
    s.seen_per_second,
    -- A measured rate within the spread of both values is within capacity.
    case
      when s.seen_per_second <= known.per_second * (1 + spread) then greatest(known.per_second, s.seen_per_second)
      else known.per_second
    end as thread_per_second,
    coalesce(own.per_second > c.busy_per_second, own.per_second is not null) as is_estimate
  from metrics.consumer_group_hourly as g
  inner join speed as s using (cluster, group_id)
  left join caught_up as c using (cluster, group_id)
  left join application as a using (cluster, group_id)
  cross join lateral (
    select case when a.records >= least_records then 1000 / nullif(a.record_latency_ms, 0) end as per_second
  ) as own
  cross join lateral (select greatest(own.per_second, c.busy_per_second) as per_second) as known
  where g.hour = of_hour and (a.group_id is not null or c.group_id is not null)
$$;
comment on function public.thread_capacity is
'Records per second that one thread or member of a group can process, from its record latency or from its catch-up phases.';

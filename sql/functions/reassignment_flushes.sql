-- Log flush latency of the brokers that take part in a reassignment, its baseline, and what they copy.
create or replace function public.reassignment_flushes(as_of timestamptz, least_history integer) returns table (
  cluster text, broker_id integer,
  samples double precision,                    -- null: no response over JMX
  log_flush_p95_ms double precision,
  log_flushes_per_second double precision,
  baseline_ms double precision,                -- of the same hour of the week, before the reassignment; null: unknown
  copied_bytes_per_second double precision,    -- in or out, whichever is more
  copied_ratio double precision                -- of the other traffic; null: unknown, or no other traffic
) language sql stable rows 10 as $$
  select
    t.cluster,
    t.broker_id,
    b.samples,
    b.log_flush_p95_ms,
    b.log_flushes_per_second,
    u.median,
    greatest(b.reassignment_bytes_in_per_second, b.reassignment_bytes_out_per_second),
    (b.reassignment_bytes_in_per_second + b.reassignment_bytes_out_per_second) / nullif(
      b.bytes_in_per_second + b.bytes_out_per_second + coalesce(b.replication_bytes_in_per_second, 0)
      + coalesce(b.replication_bytes_out_per_second, 0), 0
    )
  from public.reassignment_brokers(as_of) as t
  left join inventory.broker_hourly as o on o.hour = as_of and t.cluster = o.cluster and t.broker_id = o.broker_id
  left join metrics.broker_hourly as b on b.hour = as_of and t.cluster = b.cluster and t.broker_id = b.broker_id
  left join public.reassignments(as_of) as g on t.cluster = g.cluster
  left join lateral (
    select
      array_agg(h.hour) as hours,
      array_agg(h.log_flush_p95_ms) as flush_ms
    from metrics.broker_hourly as h
    where h.hour >= as_of - interval '672 hours' and h.hour < g.running_since
    and h.cluster = b.cluster and h.endpoint = b.endpoint
  ) as h on true
  left join lateral public.topic_baseline(b.hour, h.hours, h.flush_ms, least_history) as u on true
  where o.is_listed is distinct from false
$$;
comment on function public.reassignment_flushes is
'Log flush latency of brokers that take part in a reassignment, against its baseline from before the reassignment.';

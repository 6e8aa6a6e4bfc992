-- The three applications of a cluster by the produce requests that batches of `batch_bytes` would save.
create or replace function public.small_batch_producers(
  as_of timestamptz, of_cluster text, full_batch_bytes double precision
) returns jsonb language sql stable as $$
  select
    jsonb_agg(
      jsonb_build_object(
        'app', app,
        'batch_bytes', batch_bytes,
        'queue_ms', queue_ms,
        'requests_per_second', requests_per_second,
        'compression_ratio', compression_ratio
      ) order by place
    )
  from (
    select
      app,
      sum(batch_mean_bytes * requests) / sum(requests) as batch_bytes,
      sum(queue_mean_ms * requests) / sum(requests) as queue_ms,
      sum(requests / covered_seconds) as requests_per_second,
      sum(compression_ratio * requests) / sum(requests) as compression_ratio,
      row_number() over (
        order by sum(requests / covered_seconds * (full_batch_bytes - batch_mean_bytes)) desc, app asc
      ) as place
    from metrics.client_hourly
    where hour = as_of and cluster = of_cluster and kind = 'producer'
    and batch_mean_bytes < full_batch_bytes and requests > 0
    group by app
  ) as one
  where place <= 3
$$;
comment on function public.small_batch_producers is
'The three applications of a cluster that would save most produce requests with full batches; null: none.';

-- Maximum RocksDB memory of each process with so many days of data that no longer grows: since its start, with as many
-- stores as now, it takes at most still_ratio of its memory in the earlier half of the time.
create or replace function metrics.settled_stores(
  of_hour timestamptz, measured_days double precision, still_ratio double precision
) returns table (
  cluster text, endpoint text,
  measured_bytes double precision              -- maximum of that time
) language sql stable rows 1000 set enable_nestloop = off as $$
  select then_.cluster, then_.endpoint, max(then_.rocksdb_measured_bytes)
  from metrics.jvm_app_hourly as then_
  inner join metrics.jvm_app_hourly as a on a.hour = of_hour and then_.cluster = a.cluster and then_.endpoint = a.endpoint
  cross join lateral (select of_hour - make_interval(secs => measured_days * 86400) as since) as w
  where
    then_.hour > w.since and then_.hour <= of_hour
    and a.process_started_at <= w.since
    and a.store_instances > 0 and a.rocksdb_measured_bytes is not null
  group by then_.cluster, then_.endpoint, w.since, a.store_instances
  having
    -- A third of the hours, almost from the beginning.
    count(then_.rocksdb_measured_bytes) >= measured_days * 24 / 3
    and min(then_.hour) filter (where then_.rocksdb_measured_bytes is not null)
      <= w.since + make_interval(secs => measured_days * 8640)
    and min(then_.store_instances) >= a.store_instances
    and max(then_.rocksdb_measured_bytes) <= still_ratio * max(then_.rocksdb_measured_bytes)
      filter (where then_.hour <= w.since + make_interval(secs => measured_days * 43200))
$$;
comment on function metrics.settled_stores is
'Maximum RocksDB memory of each process with so many days of data that no longer grows.';

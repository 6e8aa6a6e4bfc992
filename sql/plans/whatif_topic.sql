-- Load of each broker of a cluster with one more topic, spread evenly: each replica writes the bytes in, bytes out go to
-- followers and consumers, CPU grows with bytes, and open files grow with partitions.
select
  h.broker_id,
  h.hours as known_hours,
  h.cpu_ratio,
  h.cpu_ratio * load.ratio as cpu_after_ratio,
  h.cpu_one_lost_ratio * load.ratio as cpu_one_lost_ratio,
  h.bytes_in_per_second,
  h.bytes_in_per_second + more.bytes_in as bytes_in_after_per_second,
  h.bytes_out_per_second,
  h.bytes_out_per_second + more.bytes_out as bytes_out_after_per_second,
  h.partitions,
  h.partitions + more.partitions as partitions_after,
  cast(h.usable_bytes as double precision) as usable_bytes,
  h.usable_bytes - more.bytes_in * :retention_hours * 3600 as usable_after_bytes,
  h.open_files_ratio,
  h.open_files_ratio * files.ratio as open_files_after_ratio,
  h.open_files_one_lost_ratio * files.ratio as open_files_one_lost_ratio,
  greatest(h.network_in_ratio, h.network_out_ratio) as network_ratio,
  greatest(h.network_in_ratio * bytes.in_ratio, h.network_out_ratio * bytes.out_ratio) as network_after_ratio,
  greatest(h.network_in_one_lost_ratio * bytes.in_ratio, h.network_out_one_lost_ratio * bytes.out_ratio)
    as network_one_lost_ratio
from public.cluster_headroom as h
cross join lateral (
  select
    :bytes_per_second * :replicas / h.brokers as bytes_in,
    :bytes_per_second * (:replicas - 1 + :readers) / h.brokers as bytes_out,
    cast(:partitions as double precision) * :replicas / h.brokers as partitions
) as more
cross join lateral (
  select
    1 + (more.bytes_in + more.bytes_out) / nullif(h.bytes_in_per_second + h.bytes_out_per_second, 0) as ratio
) as load
cross join lateral (
  select
    1 + more.bytes_in / nullif(h.bytes_in_per_second, 0) as in_ratio,
    1 + more.bytes_out / nullif(h.bytes_out_per_second, 0) as out_ratio
) as bytes
cross join lateral (select 1 + more.partitions / nullif(h.partitions, 0) as ratio) as files
where h.cluster = :cluster
order by h.broker_id asc

-- Headroom of each broker: 95th percentile of its hours of the last 7 days, and its load if the busiest of its peers failed and its work were shared evenly. Of the brokers of the newest gathered hour.
create or replace view public.cluster_headroom as
with newest as (
  select max(hour) as hour from metrics.broker_hourly
),

now as (
  select
    b.*,
    d.total_bytes,
    d.usable_bytes
  from newest as n
  inner join metrics.broker_hourly as b on n.hour = b.hour
  left join lateral (
    select
      sum(l.total_bytes) as total_bytes,
      sum(l.usable_bytes) as usable_bytes
    from metrics.log_dir_hourly as l
    where l.hour = b.hour and l.cluster = b.cluster and l.broker_id = b.broker_id
  ) as d on true
  where b.active_controllers is null or b.partitions is not null
),

-- Baseline bandwidth of each broker's instance.
network as (
  select
    i.instance_id,
    min(i.baseline_bytes_per_second) filter (where i.direction = 'in') as limit_in,
    min(i.baseline_bytes_per_second) filter (where i.direction = 'out') as limit_out
  from newest as n
  inner join metrics.instance_network_hourly as i on n.hour = i.hour
  group by i.instance_id
),

week as (
  select
    b.cluster,
    b.endpoint,
    count(b.samples) as hours,
    percentile_cont(0.95) within group (order by b.cpu_ratio) as cpu_ratio,
    percentile_cont(0.95) within group (
      order by b.bytes_in_per_second + coalesce(b.replication_bytes_in_per_second, 0)
    ) as bytes_in_per_second,
    percentile_cont(0.95) within group (
      order by b.bytes_out_per_second + coalesce(b.replication_bytes_out_per_second, 0)
    ) as bytes_out_per_second,
    percentile_cont(0.95) within group (order by b.open_file_descriptors) as open_files
  from newest as n
  inner join metrics.broker_hourly as b on n.hour - interval '7 days' < b.hour and n.hour >= b.hour
  group by b.cluster, b.endpoint
),

broker as (
  select
    n.hour,
    n.cluster,
    n.endpoint,
    coalesce(n.broker_id::text, n.endpoint) as broker_id,
    w.hours,
    w.cpu_ratio,
    w.bytes_in_per_second,
    w.bytes_out_per_second,
    w.open_files,
    n.max_file_descriptors,
    i.limit_in,
    i.limit_out,
    n.partitions,
    n.total_bytes,
    n.total_bytes - n.usable_bytes as used_bytes,
    count(*) over peers as brokers,
    max(w.cpu_ratio) over peers / nullif(count(*) over peers - 1, 0) as more_cpu_ratio,
    max(n.total_bytes - n.usable_bytes) over peers / nullif(count(*) over peers - 1, 0) as more_used_bytes,
    max(w.bytes_in_per_second) over peers / nullif(count(*) over peers - 1, 0) as more_bytes_in,
    max(w.bytes_out_per_second) over peers / nullif(count(*) over peers - 1, 0) as more_bytes_out,
    max(w.open_files) over peers / nullif(count(*) over peers - 1, 0) as more_open_files,
    max(n.partitions) over peers / nullif(count(*) over peers - 1, 0) as more_partitions
  from now as n
  inner join week as w on n.cluster = w.cluster and n.endpoint = w.endpoint
  left join network as i on n.instance_id = i.instance_id
  window peers as (partition by n.cluster)
)

select
  cluster,  -- Kafka cluster
  broker_id,  -- Broker
  brokers,  -- Brokers of the cluster
  cpu_ratio,  -- CPU of the process as a share of the host's CPU
  cpu_ratio + more_cpu_ratio as cpu_one_lost_ratio,  -- The same with the busiest peer lost; null: it has no peer
  bytes_in_per_second,  -- Bytes received per second, from producers and by replication
  bytes_out_per_second,  -- Bytes sent per second, to consumers and followers
  bytes_in_per_second / nullif(limit_in, 0) as network_in_ratio,  -- Bytes received, as a share of the instance's baseline bandwidth; null: not reported by EC2
  (bytes_in_per_second + more_bytes_in) / nullif(limit_in, 0) as network_in_one_lost_ratio,  -- The same with the peer lost that receives the most
  bytes_out_per_second / nullif(limit_out, 0) as network_out_ratio,  -- Bytes sent, as a share of the instance's baseline bandwidth
  (bytes_out_per_second + more_bytes_out) / nullif(limit_out, 0) as network_out_one_lost_ratio,  -- The same with the peer lost that sends the most
  used_bytes / nullif(total_bytes, 0)::double precision as disk_ratio,  -- Used share of its log directories' volumes now; null: not reported
  (used_bytes + more_used_bytes) / nullif(total_bytes, 0)::double precision as disk_one_lost_ratio,  -- The same with the fullest peer lost
  total_bytes - used_bytes as usable_bytes,  -- Free bytes of these volumes
  partitions,  -- Replicas that it holds now
  partitions + more_partitions as partitions_one_lost,  -- The same with the fullest peer lost
  open_files / nullif(max_file_descriptors, 0) as open_files_ratio,  -- Open file descriptors as a share of the limit
  (open_files + more_open_files) / nullif(max_file_descriptors, 0) as open_files_one_lost_ratio,  -- The same with the peer lost that has the most
  hours,  -- Hours of the 7 days with data
  hour  -- Start of the hour (UTC)
from broker
order by cluster asc, broker_id asc;

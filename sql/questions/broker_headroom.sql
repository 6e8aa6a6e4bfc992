/*
title: What headroom each broker has if one fails
subject: hosts
description: >
  Load of each broker as a share of its limits, now and with the busiest peer lost. 95th percentile of 7 days.
params:
  cluster: {type: text, description: Kafka cluster, default: null, example: orders-prod}
columns:
  cluster: Kafka cluster
  broker_id: Broker
  brokers: Brokers of the cluster
  cpu_ratio: CPU of the process as a share of the host
  cpu_one_lost_ratio: The same with one broker lost
  network_in_one_lost_ratio: Bytes received as a share of the baseline bandwidth, with one broker lost
  network_out_one_lost_ratio: Bytes sent as a share of the baseline bandwidth, with one broker lost
  disk_ratio: Used share of the log directories now
  disk_one_lost_ratio: The same with one broker lost
  partitions_one_lost: Replicas with one broker lost
  open_files_one_lost_ratio: Open file descriptors as a share of the limit, with one broker lost
  worst_one_lost_ratio: Largest of these ratios with one broker lost; above 1 the cluster does not survive the loss
  hours: Hours of the 7 days with data
*/
select
  cluster,
  broker_id,
  brokers,
  cpu_ratio,
  cpu_one_lost_ratio,
  network_in_one_lost_ratio,
  network_out_one_lost_ratio,
  disk_ratio,
  disk_one_lost_ratio,
  partitions_one_lost,
  open_files_one_lost_ratio,
  greatest(
    cpu_one_lost_ratio, network_in_one_lost_ratio, network_out_one_lost_ratio, disk_one_lost_ratio,
    open_files_one_lost_ratio
  ) as worst_one_lost_ratio,
  hours
from public.cluster_headroom
where :cluster is null or cluster = :cluster
order by worst_one_lost_ratio desc nulls last, cluster asc, broker_id asc

/*
title: How close applications are to their memory limit
subject: streams
description: >
  Resident or accounted memory of each process in the newest hour, against its limit.
params:
  application: {type: text, description: 'Application, as in the config or its Kafka Streams application id', default: null}
columns:
  cluster: Kafka cluster
  app: Application, as in the config
  application_id: Kafka Streams application id; null if there is none
  endpoint: JMX endpoint of the process
  memory_limit_bytes: Memory limit of its container or host
  resident_bytes: Resident memory; null if not reported
  heap_max_bytes: Heap limit
  rocksdb_expected_bytes: Maximum of RocksDB's memory by configuration; null if not known
  used_ratio: Resident memory as a share of the limit
  hour: Start of the hour (UTC)
*/
select
  cluster,
  app,
  application_id,
  endpoint,
  memory_limit_bytes,
  resident_bytes,
  heap_max_bytes,
  rocksdb_expected_bytes,
  resident_bytes / nullif(memory_limit_bytes, 0) as used_ratio,
  hour
from metrics.jvm_app_hourly
where
  hour = (select max(hour) from metrics.jvm_app_hourly)
  and (:application is null or :application in (app, application_id))
order by used_ratio desc nulls last, cluster asc, app asc, endpoint asc

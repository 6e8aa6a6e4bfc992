-- What the threads of an application may wait for, while they have a record.
alter table metrics.jvm_app_hourly
  add column cpu_seconds double precision,  -- CPU time of the whole process in covered_seconds
  add column producer_wait_seconds double precision,  -- Time in covered_seconds for which threads waited until a producer's buffer had room or brokers had told it of a topic; null: no producer, or one too old to tell
  add column system_cpu_ratio double precision,  -- Share of all processors' time that was in use, as the JVM sees it: of its machine, or of its container's limit; mean of the samples
  add column throttled_ratio double precision,  -- Share of its container's CPU periods in which it was stopped for having used up its CPU; null: no limit, or not known (cAdvisor)
  add column pool_connections double precision,  -- Connections of its pools to databases, largest sample; null: no pool that tells (HikariCP)
  add column pool_connections_in_use double precision,  -- The same: those in use, mean of the samples
  add column pool_threads_waiting double precision;  -- Threads that wait for such a connection, mean of the samples
alter table metrics.node_hourly
  add column steal_ratio double precision;  -- Share of the processors' time that the hypervisor gave to others, mean; cpu_ratio has it too

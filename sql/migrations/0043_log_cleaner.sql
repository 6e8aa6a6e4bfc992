-- Whether what is compacted is still compacted.
alter table metrics.broker_hourly
  add column dead_cleaner_threads double precision,  -- Threads of the log cleaner that are dead, largest sample
  add column uncleanable_partitions double precision,  -- Partitions that the log cleaner gave up, all directories, largest sample
  add column uncleanable_bytes double precision,  -- Bytes of their logs that are to be compacted, largest sample
  add column cleaner_last_run_seconds double precision;  -- Since the log cleaner looked for work last, largest sample

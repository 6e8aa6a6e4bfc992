-- What the readers of a topic can take: what their threads need for a record, and how fast they read when they have to.
alter table metrics.jvm_app_hourly
  add column record_latency_ms double precision,  -- Time to process a record, mean of its stream threads and samples
  add column poll_ratio double precision;  -- Share of their time that its stream threads spend in poll: waiting, and fetching; mean of threads and samples

alter table metrics.consumer_group_hourly
  add column busy_member_per_second double precision;  -- Records per second that a member read, of all its partitions, which was behind for as long as its commits of the hour tell: the fastest of such; null: none was

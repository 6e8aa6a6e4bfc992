-- Metrics of consumer groups and clients.

-- A Kafka client of an application in an hour, by its own JMX metrics.
create table metrics.client_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster of its application
  app text not null,  -- Application
  endpoint text not null,  -- Address of the process' JMX endpoint
  kind text not null,  -- producer or consumer
  client_id text not null,  -- Client id
  covered_seconds double precision,  -- Time span of the counters, in seconds; null: read only once
  records double precision,  -- Records sent or consumed in covered_seconds
  bytes double precision,  -- Bytes of these records: as sent for a producer, uncompressed for a consumer
  record_errors double precision,  -- Producer: records that failed (record-error) in covered_seconds
  buffer_exhausted double precision,  -- Producer: sends that failed because the buffer had no room within max.block.ms; null: not counted by this producer
  requests double precision,  -- Producer: requests of every kind in covered_seconds
  batch_mean_bytes double precision,  -- Producer: batch size as sent, mean; null: no batch was sent recently
  queue_mean_ms double precision,  -- Producer: time that a batch waited in the buffer, mean
  queue_max_ms double precision,  -- Producer: time that a batch waited in the buffer, maximum
  compression_ratio double precision,  -- Producer: compression ratio of batches, mean; 1: not compressed
  throttle_mean_ms double precision,  -- Delay of a request by broker quotas, mean
  fetches double precision,  -- Consumer: fetch requests in covered_seconds
  network_in_bytes double precision,  -- Consumer: bytes of all responses in covered_seconds, as on the wire
  poll_gap_max_ms double precision,  -- Consumer: longest time between two polls
  primary key (hour, cluster, endpoint, kind, client_id)
) partition by range (hour);

-- A Kafka client on one topic in an hour, by its own JMX metrics. Kept: the 100 topics of a client with the most bytes that had records or record errors.
create table metrics.client_topic_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster of its application
  app text not null,  -- Application
  endpoint text not null,  -- Address of the process' JMX endpoint
  kind text not null,  -- producer or consumer
  client_id text not null,  -- Client id
  topic text not null,  -- Topic; consumers before Kafka 4.1 replace each dot with _
  covered_seconds double precision not null,  -- Time span of the counters, in seconds
  records double precision not null,  -- Records sent or consumed in covered_seconds
  bytes double precision,  -- Bytes of these records: as sent for a producer, uncompressed for a consumer
  record_errors double precision,  -- Producer: records of the topic that failed
  primary key (hour, cluster, endpoint, kind, client_id, topic)
) partition by range (hour);

-- A consumer group in an hour.
create table metrics.consumer_group_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  group_id text not null,  -- Group
  state text,  -- State when it was described
  members integer,  -- Members when it was described
  topics integer,  -- Topics with commits; null: commits are not known
  partitions integer,  -- Partitions with commits; null: commits are not known
  lag_records bigint,  -- Sum over the partitions with known lag
  lag_records_max bigint,  -- Lag of the partition with the largest lag
  lag_seconds_max double precision,  -- Age of the oldest unread record, maximum of the partitions
  lag_unknown_partitions integer,  -- Partitions with commits and unknown lag; null: commits are not known
  commits integer,  -- Commits in the hour; null: __consumer_offsets could not be read
  records_consumed bigint,  -- Advance of the committed offsets in the hour, in records
  rebalances integer,  -- Rebalances (new generations) in the hour; null: __consumer_offsets could not be read
  status text,  -- Worst status of its partitions
  worst_topic text,  -- Topic of the worst partition
  worst_partition integer,  -- Partition with the worst status
  busy_member_per_second double precision,  -- Records per second that one member consumed from all its partitions while it was lagging, by its commits in the hour: the fastest such member; null: no member was lagging
  primary key (hour, cluster, group_id)
) partition by range (hour);

-- A group on a partition in an hour: its commits and lag. No row: the group never committed there.
create table metrics.consumer_partition_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  group_id text not null,  -- Group
  topic text not null,  -- Topic
  partition integer not null,  -- Partition
  committed_offset bigint,  -- Newest committed offset known at the end of the hour
  committed_at timestamptz,  -- When it was committed (UTC); null: before the oldest record of __consumer_offsets
  log_end_offset bigint,  -- Log-end offset at the end of the hour; where producer timestamps put it below an offset committed by then, the committed offset; null: unknown, or the topic was deleted
  lag_records bigint,  -- Records that the group can still read: up to the log-end or last stable offset, from the committed offset or log-start offset, without transaction markers and aborted records; null: unknown, also where the committed offset is beyond the log end
  lag_seconds double precision,  -- Age of the first uncommitted record; 0 without lag; null: unknown
  commits integer,  -- Commits in the hour; null: __consumer_offsets could not be read
  records_consumed bigint,  -- Advance of the committed offset in the hour, in records (rewinds are not subtracted)
  consumed_seconds double precision,  -- Seconds between the first and the last commit behind records_consumed
  moved_at timestamptz,  -- When the committed offset last advanced (UTC); null: not since 15 minutes before the hour
  rewinds integer,  -- Commits below the previous commit
  status text,  -- ok, warn, stop, stall or rewind, by Burrow's rules; null: unknown
  lag_slope_per_second double precision,  -- Records per second that arrived minus those consumed, since the last known rewind
  client_id text,  -- client.id of the member that owns the partition
  host text,  -- Host of that member
  still_seconds double precision,  -- Seconds since the committed offset last advanced, as of the end of the hour; a lower bound where no advance is known (15 minutes before the hour and later); null: __consumer_offsets could not be read
  silent_seconds double precision,  -- Seconds since the last commit, as of the end of the hour; a lower bound where no commit is known; null: __consumer_offsets could not be read
  commit_gap_p95_seconds double precision,  -- 95th percentile of the seconds between two known commits; null: fewer than two commits
  is_assigned boolean,  -- Whether the partition is assigned to a member of the group; null: assignments are not known
  lag_seconds_low double precision,  -- Lower bound of lag_seconds
  lag_seconds_high double precision,  -- Upper bound of lag_seconds; null: no bound
  arriving_per_second double precision,  -- Records per second that were appended to the log in the hour
  reading_per_second_low double precision,  -- Records per second consumed since the last known rewind, by commits: the smaller of the rate over all that time and the rate over its second half
  reading_per_second_high double precision,  -- The larger of the two rates
  reading_seconds double precision,  -- Seconds of commits behind these two rates
  waiting_records bigint,  -- Part of lag_records that was appended at least a minute before the end of the hour
  primary key (hour, cluster, group_id, topic, partition)
) partition by range (hour);

-- Rebalances of consumer groups: which members joined and left, and when. They show why a group rebalances continuously.
create table metrics.group_step_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  group_id text not null,  -- Group
  generation integer not null,  -- Generation that began
  began_at timestamptz not null,  -- When its members had joined (UTC)
  members integer,  -- Members; null: a newer protocol, whose records do not have them
  gone jsonb,  -- Members of the previous generation that left, a JSON list of {client_id, host, assignment} with the partitions that they had, by topic (left out where not readable); null: unknown
  come jsonb,  -- Members that joined with this generation, a JSON list of {client_id, host}; null: unknown
  poll_interval_ms integer,  -- Largest max.poll.interval.ms of its members
  session_timeout_ms integer,  -- Largest session.timeout.ms of its members
  primary key (hour, cluster, group_id, generation, began_at)
) partition by range (hour);

-- Lag of a consumer group on a topic by CloudWatch, of MSK clusters whose offsets are not read.
create table metrics.msk_consumer_lag_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  group_id text not null,  -- Group
  topic text not null,  -- Topic
  minutes_present integer,  -- Minutes with MaxOffsetLag
  max_offset_lag_first double precision,  -- MaxOffsetLag: records of its worst partition, first minute
  max_offset_lag_last double precision,  -- MaxOffsetLag: records of its worst partition, last minute
  max_offset_lag_min double precision,  -- MaxOffsetLag: records of its worst partition, least minute
  max_offset_lag_max double precision,  -- MaxOffsetLag: records of its worst partition, largest minute
  sum_offset_lag_first double precision,  -- SumOffsetLag: records of all partitions, first minute
  sum_offset_lag_last double precision,  -- SumOffsetLag: records of all partitions, last minute
  sum_offset_lag_min double precision,  -- SumOffsetLag: records of all partitions, least minute
  sum_offset_lag_max double precision,  -- SumOffsetLag: records of all partitions, largest minute
  time_lag_seconds_first double precision,  -- EstimatedMaxTimeLag: seconds to catch up, first minute
  time_lag_seconds_last double precision,  -- EstimatedMaxTimeLag: seconds to catch up, last minute
  time_lag_seconds_min double precision,  -- EstimatedMaxTimeLag: seconds to catch up, least minute
  time_lag_seconds_max double precision,  -- EstimatedMaxTimeLag: seconds to catch up, largest minute
  primary key (hour, cluster, group_id, topic)
) partition by range (hour);

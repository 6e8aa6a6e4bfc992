-- Metrics of consumer groups and clients.

-- What applications' Kafka clients say of themselves.
create table metrics.client_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster of its application
  app text not null,  -- Application
  endpoint text not null,  -- Address of the process' JMX agent
  kind text not null,  -- producer or consumer
  client_id text not null,  -- Client id
  covered_seconds double precision,  -- Time that the counts are of; null: read once only
  records double precision,  -- Records that it sent or read in covered_seconds
  bytes double precision,  -- Bytes of these: a producer's as they are sent, a consumer's uncompressed
  record_errors double precision,  -- Of a producer: records that it gave up in covered_seconds
  buffer_exhausted double precision,  -- Of a producer: records that it didn't take, as its buffer had no room within max.block.ms; null for a producer that doesn't count them
  requests double precision,  -- Of a producer: requests of every kind in covered_seconds
  batch_mean_bytes double precision,  -- Of a producer: size of a batch as it is sent, mean; null: it sent none lately
  queue_mean_ms double precision,  -- Of a producer: time that a batch waited until it was sent, mean
  queue_max_ms double precision,  -- The same, longest
  compression_ratio double precision,  -- Of a producer: what compression leaves of a batch, mean; 1: not compressed
  throttle_mean_ms double precision,  -- Time by which brokers' quotas delayed a request, mean
  fetches double precision,  -- Of a consumer: fetch requests in covered_seconds
  network_in_bytes double precision,  -- Of a consumer: bytes of all answers in covered_seconds, as they are on the wire
  poll_gap_max_ms double precision,  -- Of a consumer: longest time between two polls
  primary key (hour, cluster, endpoint, kind, client_id)
) partition by range (hour);

-- An hour of a Kafka client on one topic, by its own metrics: the 100 topics of a client with most bytes, of those on which records went, or were given up.
create table metrics.client_topic_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster of its application
  app text not null,  -- Application
  endpoint text not null,  -- Address of the process' JMX agent
  kind text not null,  -- producer or consumer
  client_id text not null,  -- Client id
  topic text not null,  -- Topic; consumers before Kafka 4.1 write _ for each of its dots
  covered_seconds double precision not null,  -- Time that the counts are of
  records double precision not null,  -- Records that it sent or read in covered_seconds
  bytes double precision,  -- Bytes of these: a producer's as they are sent, a consumer's uncompressed
  record_errors double precision,  -- Of a producer: records of the topic that it gave up
  primary key (hour, cluster, endpoint, kind, client_id, topic)
) partition by range (hour);

-- An hour of a consumer group.
create table metrics.consumer_group_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  group_id text not null,  -- Group
  state text,  -- State when it was asked
  members integer,  -- Members when it was asked
  topics integer,  -- Topics with commits; null: its commits aren't known
  partitions integer,  -- Partitions with commits; null: its commits aren't known
  lag_records bigint,  -- Sum over the partitions whose lag is known
  lag_records_max bigint,  -- Worst partition
  lag_seconds_max double precision,  -- Worst partition
  lag_unknown_partitions integer,  -- Partitions with commits whose lag isn't known; null: its commits aren't known
  commits integer,  -- Commits in the hour; null: history couldn't be read
  records_consumed bigint,  -- Progress of the committed offsets in the hour
  rebalances integer,  -- Generation steps in the hour; null: history couldn't be read
  status text,  -- Worst status of its partitions
  worst_topic text,  -- Topic of the worst partition
  worst_partition integer,  -- The worst partition
  busy_member_per_second double precision,  -- Records per second that a member read, of all its partitions, which was behind for as long as its commits of the hour tell: the fastest of such; null: none was
  primary key (hour, cluster, group_id)
) partition by range (hour);

-- An hour of a group on a partition: its commits and its lag. No row: the group never committed there.
create table metrics.consumer_partition_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  group_id text not null,  -- Group
  topic text not null,  -- Topic
  partition integer not null,  -- Partition
  committed_offset bigint,  -- Committed offset (the newest known at the end of the hour)
  committed_at timestamptz,  -- When it was committed; null: before what __consumer_offsets still tells
  log_end_offset bigint,  -- Offset that the log ended at by the hour's end; where producers' clocks put that below what was committed by then, what is proven; null: unknown, or the topic is gone
  lag_records bigint,  -- Records that a reader can still have: from the committed offset, the log's start, or what is behind markers and aborted records, whichever is latest, to the log's end or its last stable offset; null: unknown, also where the commit lies beyond the log's end
  lag_seconds double precision,  -- Age of the first uncommitted record; 0 without lag; null: unknown
  commits integer,  -- Commits in the hour; null: history couldn't be read
  records_consumed bigint,  -- Progress of the committed offset in the hour (rewinds don't count back)
  consumed_seconds double precision,  -- Seconds between the first and the last commit behind records_consumed
  moved_at timestamptz,  -- When the committed offset last moved; null: not since 15 minutes before the hour
  rewinds integer,  -- Commits below their predecessor
  status text,  -- ok, warn, stop, stall or rewind, by Burrow's rules; null: can't be said
  lag_slope_per_second double precision,  -- Records per second that arrived less those that were read since the last rewind at hand
  client_id text,  -- client.id of the member that owns the partition
  host text,  -- Host of that member
  still_seconds double precision,  -- Seconds since the committed offset last moved, as of the hour's end; at least so many where no move is at hand (15 minutes before the hour and later); null: history couldn't be read
  silent_seconds double precision,  -- Seconds since the last commit, as of the hour's end; at least so many where no commit is at hand; null: history couldn't be read
  commit_gap_p95_seconds double precision,  -- 95th percentile of the seconds between two commits, over those at hand; null: fewer than two
  is_assigned boolean,  -- Whether a member of the group has the partition; null: no assignments are known
  lag_seconds_low double precision,  -- The lag is certainly at least so old
  lag_seconds_high double precision,  -- The lag is certainly at most so old; null: not bounded
  arriving_per_second double precision,  -- Records per second that the log got in the hour
  reading_per_second_low double precision,  -- Records per second that were read since the last rewind at hand, by commits: the lesser of all that time and its second half
  reading_per_second_high double precision,  -- The greater of both
  reading_seconds double precision,  -- Seconds of commits behind these two
  waiting_records bigint,  -- Of lag_records those that came a minute or more before the hour's end
  primary key (hour, cluster, group_id, topic, partition)
) partition by range (hour);

-- Rebalances of consumer groups one by one: why a group comes to no rest shows in who leaves it, and at which pace.
create table metrics.group_step_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  cluster text not null,  -- Kafka cluster
  group_id text not null,  -- Group
  generation integer not null,  -- Generation that began
  began_at timestamptz not null,  -- When its members had joined (UTC)
  members integer,  -- Members; null: of a newer protocol, whose records don't tell them
  gone jsonb,  -- Members of the generation before that are gone, a JSON list of {client_id, host, assignment}, with the partitions that they had by topic (left out where it can't be read); null: unknown
  come jsonb,  -- Members that the generation before didn't have, a JSON list of {client_id, host}; null: unknown
  poll_interval_ms integer,  -- Longest max.poll.interval.ms of its members
  session_timeout_ms integer,  -- Longest session.timeout.ms of its members
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

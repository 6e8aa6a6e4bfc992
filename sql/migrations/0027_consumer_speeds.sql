-- How fast a group reads a partition, and between which bounds its lag is known.
alter table metrics.consumer_partition_hourly
  add column lag_seconds_low double precision,  -- The lag is certainly at least so old
  add column lag_seconds_high double precision,  -- The lag is certainly at most so old; null: not bounded
  add column arriving_per_second double precision,  -- Records per second that the log got in the hour
  add column reading_per_second_low double precision,  -- Records per second that were read since the last rewind at hand, by commits: the lesser of all that time and its second half
  add column reading_per_second_high double precision,  -- The greater of both
  add column reading_seconds double precision;  -- Seconds of commits behind these two
comment on column metrics.consumer_partition_hourly.lag_slope_per_second is
'Records per second that arrived less those that were read since the last rewind at hand';
comment on column metrics.consumer_partition_hourly.lag_records is
'Records that a reader can still have: from the committed offset, or the log''s start where that is later, to the log''s end or its last stable offset; null: unknown, also where the commit lies beyond the log''s end';
comment on column metrics.consumer_partition_hourly.log_end_offset is
'Offset that the log ended at by the hour''s end; where producers'' clocks put that below what was committed by then, what is proven; null: unknown, or the topic is gone';

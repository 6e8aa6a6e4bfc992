-- What has waited for a reader for a minute or more.
alter table metrics.consumer_partition_hourly
  add column waiting_records bigint;  -- Of lag_records those that came a minute or more before the hour's end
comment on column metrics.consumer_partition_hourly.lag_records is
'Records that a reader can still have: from the committed offset, the log''s start, or what is behind markers and aborted records, whichever is latest, to the log''s end or its last stable offset; null: unknown, also where the commit lies beyond the log''s end';

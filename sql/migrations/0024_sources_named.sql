-- The rules behind a status are Burrow's (github.com/linkedin/Burrow, "Consumer Lag Evaluation Rules").
comment on column metrics.consumer_partition_hourly.status is
'ok, warn, stop, stall or rewind, by Burrow''s rules; null: can''t be said';

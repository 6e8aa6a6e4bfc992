-- What producers asked for and didn't get.
alter table metrics.broker_hourly
  add column failed_produces double precision,  -- Partitions of produce requests that failed in covered_seconds for no reason that is usual in an election
  add column produce_errors jsonb;  -- Produce responses in covered_seconds by their error, those without left out: {error: responses}; null: it doesn't tell

alter table metrics.broker_topic_sample
  add column failed_produces double precision,  -- The same of the topic, in the time that broker_hourly.covered_seconds says
  add column bytes_rejected double precision,  -- Bytes of batches that were refused as too large, in that time
  add column failed_produces_total double precision,  -- Counter of produces that failed, as last read
  add column bytes_rejected_total double precision;  -- Counter of bytes refused, as last read

alter table metrics.topic_hourly
  add column failed_produces double precision,  -- Partitions of produce requests that failed, likewise
  add column bytes_rejected double precision;  -- Bytes of batches that were refused as too large, likewise

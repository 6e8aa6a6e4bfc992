-- How often topics are read and written to, however little comes of it.
alter table metrics.broker_topic_sample
  add column fetch_requests double precision,  -- Reads of the topic's partitions, by consumers and followers, in the time that broker_hourly.covered_seconds says
  add column produce_requests double precision,  -- Writes to the topic's partitions in that time; a request for several counts for each
  add column fetch_requests_total double precision,  -- Counter of reads of partitions, as last read
  add column produce_requests_total double precision;  -- Counter of writes to partitions, as last read

alter table metrics.topic_hourly
  add column fetch_requests double precision,  -- Reads of its partitions, by consumers and followers, likewise: a fetch reads each partition of its session
  add column produce_requests double precision;  -- Writes to its partitions, likewise: a request for several counts for each

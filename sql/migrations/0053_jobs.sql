-- What a topic may be, with those that Samza's jobs make.
comment on column inventory.topic_hourly.kind is
'plain, changelog, repartition, coordinator or checkpoint (of a Samza job), or internal (of Kafka itself: __…)';
comment on column inventory.topic_hourly.application_id is
'Streams application id or Samza job that the topic belongs to; null of plain and internal topics';

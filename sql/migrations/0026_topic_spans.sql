-- Brokers count for different times, as after a restart of one: bytes over one's span were divided by the least of all.
comment on column metrics.topic_hourly.covered_seconds is
'Seconds that the counts cover: the longest that one of its brokers counted';
comment on column metrics.topic_hourly.bytes_in is
'Bytes produced in that time; what a broker counted for less is taken to have gone on at its rate';
comment on column metrics.topic_hourly.bytes_out is
'Bytes fetched by consumers in that time, likewise';
comment on column metrics.topic_hourly.messages_in is
'Messages produced in that time, likewise';
